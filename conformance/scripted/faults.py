"""What is broken on purpose: ``FAKE_VLLM_FAULT=[role:]name[:number][@check],…``.

Without a role (``prefill``, ``decode``, ``reference``) every server has the fault; without a
check, every request. The suite names the check of a request in its user agent. Entries are parted
by semicolons if there are any, for the names of some checks have commas.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conformance.scripted import (
    chat_faults,
    gateway_faults,
    scheduling_faults,
    told,
    variant_faults,
)

KNOWN = {
    "recompute": "decode ignores what was handed over, and says so in its counters",
    "claim": "decode counts a transfer, but answers from its own computation",
    "wrong_kv": "decode uses KV that was damaged on the way",
    "make_up": "KV out of nothing for every prompt, counted as a transfer",
    "half": "decode uses half of what was handed over",
    "no_bytes": "fetched bytes are not counted",
    "miscount": "one prompt token is counted nowhere",
    "wants_key": "every request is answered with HTTP 401",
    "fail_fetch": "decode cannot fetch what was handed over, counts that and recomputes",
    "no_params": "prefill returns no kv_transfer_params",
    "no_stats": "/metrics without the engine's counters",
    "version": "/version says 0.N.0",
    "busy": "a request of somebody else's is under way and never ends",
    "block": "/metrics says that a block has N tokens",
    "die_at_start": "the engine's exception and its wrappers in the log, exit code 1",
    "port_in_use": "the first N starts find their port taken",
    "hang_at_start": "never listens",
    "die_on_request": "the process ends at its Nth generation request",
    "die_on_length": "the process ends at every prompt of N tokens",
    "never_settle": "requests are not counted",
    "foreign": "one request more is counted as finished each time",
    "late": "a request is counted N milliseconds after its answer",
    "slow": "every request takes N milliseconds more",
    "empty_text": "answers without a token",
    "constant": "the same answer to everything",
    "no_done": "streams without [DONE]",
    "forgets_prompt": "penalties do not count the prompt's tokens",
    "counts_first": "penalties count the first token as if it had been said before",
    "no_params_on_stop": "nothing is handed over by a request that ends with reason stop",
    "same_choices": "every choice is the first one",
    "one_beam": "beam search finds one beam, as often as it was asked for",
    "best_of": "best_of is an HTTP 500",
    "leaks_stop": "a stop string that lies across tokens is told as far as it came",
    "refuses_best_of": "best_of is HTTP 400",
    "keeps_kv": "a part of the KV cache stays in use for ever",
    "cuts_ids": "token ids are truncated as a rendered prompt is",
    "vague": "what is wrong with a request is not told",
    "few_tops": "one of the likeliest tokens is missing from log-probabilities",
    "scores_hits": "log-probabilities of prompt tokens that were not computed are junk",
    "no_salt": "the prefix cache knows no cache_salt",
    "no_messages": "a chat with token ids needs no messages",
    "lax_ids": "token ids are taken as they are, and messages instead where they cannot be",
    "renders": "token ids are ignored, messages rendered",
    "echo_ids": "token ids are taken though messages are to be echoed",
    "ids_in_completions": "a completion's prompt is ignored where there are token ids",
    "takes_long": "prompts longer than the context are answered",
    "first_for_all": "of several prompts, all get the KV of the first",
    "mixed_up": "the answers of a batch are in another order than its chats",
    "forgets_params": "responses and messages drop kv_transfer_params",
    "no_endpoint": "there are completions and chat alone",
    "no_scale_out": "token-in/token-out is switched off",
    "one_prompt": "several prompts in one request are HTTP 400",
    "counts_twice": "prompt tokens are counted twice",
    "loses_count": "one generated token of each request is not counted",
    "hits_twice": "tokens found by the connector are counted twice",
    "computed_less_cached": "what P had cached is all that D does not count as computed",
    "counts_refused": "a refused request's prompt is counted",
    "idle_child": "the last of MultiConnector's children saves nothing",
    "gives_up": "the connector fails to start, says so, and the server goes on without it",
    "registers_more": "the engine registers a connector that nobody knows",
    "spawn_children": "a grandchild in its own session, and a mapped file in /dev/shm",
}
# Fields of the request that a server may be deaf to.
FIELDS = (
    *("seed", "logit_bias", "bad_words", "allowed_token_ids", "min_tokens", "stop"),
    *("stop_token_ids", "include_stop_str_in_output", "ignore_eos", "n", "echo", "top_k"),
    *("max_tokens", "truncate_prompt_tokens"),
)
KNOWN |= {f"drop_{name}": f"{name} is ignored" for name in FIELDS}
KNOWN |= told.KNOWN | chat_faults.KNOWN | scheduling_faults.KNOWN | variant_faults.KNOWN
KNOWN |= gateway_faults.KNOWN
ROLES = ("prefill", "decode", "reference")
VARIABLE = "FAKE_VLLM_FAULT"
ASSUMPTIONS = "assumptions/"
# A folder in which servers count their starts; ``port_in_use`` needs it.
STATE_VARIABLE = "FAKE_VLLM_STATE"


@dataclass(frozen=True)
class Faults:
    """The faults of one server: name, number (1 if none was given) and check, or ""."""

    listed: tuple[tuple[str, int, str], ...]

    def at(self, agent: str) -> Faults:
        """Those that a request has, by its user agent.

        One by which the suite tries its assumptions has only those that are tied to it, else
        every fault of a reference would be one of vLLM's, and no check would be tried.
        """
        first = f" {ASSUMPTIONS}" in agent
        return Faults(
            tuple(f for f in self.listed if agent.endswith(f"/{f[2]}") or not (f[2] or first))
        )

    def __contains__(self, name: str) -> bool:
        return any(name == known for known, _, _ in self.listed)

    def heard(self, body: dict[str, Any]) -> dict[str, Any]:
        """What of a request reaches a server that is deaf to some fields."""
        return {name: value for name, value in body.items() if f"drop_{name}" not in self}

    def with_one(self, name: str) -> Faults:
        """These and one more."""
        return Faults((*self.listed, (name, 1, "")))

    def number(self, name: str) -> int:
        """The number given with a fault; 0 without the fault."""
        return next((number for known, number, _ in self.listed if name == known), 0)


NONE = Faults(())


def faults_of(role: str) -> Faults:
    """Those that the environment asks for in a server of this role."""
    return parse(os.environ.get(VARIABLE, ""), role)


def parse(text: str, role: str) -> Faults:
    """Those of a list that a server of this role has."""
    listed = []
    for entry in filter(None, text.split(";" if ";" in text else ",")):
        what, _, check = entry.strip().partition("@")
        parts = what.split(":")
        scope = parts.pop(0) if parts[0] in ROLES else role
        if parts[0] not in KNOWN:
            raise SystemExit(f"{VARIABLE}: {entry!r} is unknown")
        if scope == role:
            listed.append((parts[0], int(parts[1]) if len(parts) > 1 else 1, check))
    return Faults(tuple(listed))


def tied(by_check: Mapping[str, str | tuple[Any, ...]]) -> str:
    """What :func:`parse` reads of each check's fault: alone, or first of what is known of it.

    With a semicolon even where there is one: names of checks have commas.
    """
    faults = {c: fault if isinstance(fault, str) else fault[0] for c, fault in by_check.items()}
    return "".join(f"{fault}@{check};" for check, fault in faults.items())


def count_start(role: str) -> int:
    """How often a server of this role was started so far, this time included."""
    file = os.path.join(os.environ[STATE_VARIABLE], f"starts-{role}")
    with open(file, "a", encoding="ascii") as counted:
        counted.write("x")
    return os.path.getsize(file)
