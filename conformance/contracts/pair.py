"""A prefill and a decode instance in one process, and a prompt's way from one to the other."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from vllm.v1.request import Request

from conformance.contracts.instance import Instance
from conformance.contracts.tiny_model import BLOCK_SIZE, VOCABULARY

# Long enough not to spin, short enough not to be noticed.
POLL_S = 0.01


def prompt_of(length: int) -> list[int]:
    """A prompt of that many tokens; another length is another prompt from the first token on."""
    chosen = random.Random(length)
    return [chosen.randrange(10, VOCABULARY) for _ in range(length)]


@dataclass
class Saved:
    """A prompt that the prefill instance has finished, with what it handed over."""

    prompt: list[int]
    name: str
    params: dict[str, Any] | None


class Pair:
    """P and D, each with both of its connectors, stepped in turn."""

    def __init__(
        self, prefill: Instance, decode: Instance, patience_s: float, same_request_id: bool
    ) -> None:
        self.prefill, self.decode, self.patience_s = prefill, decode, patience_s
        self.same_request_id = same_request_id
        self._count = 0

    def save(self, length: int, params: Mapping[str, Any]) -> Saved:
        """P computes a prompt with these ``kv_transfer_params``; returns when it has finished."""
        prompt, name, journal = prompt_of(length), self._name("prefill"), self.prefill.journal
        self.prefill.scheduler.add_request(self.prefill.request(name, prompt, dict(params)))
        assert self.until(lambda: name in journal.promised), (
            f"prefill of {length} tokens did not finish in {self.patience_s} s"
        )
        return Saved(prompt, name, journal.params[name])

    def save_in_two_steps(self, length: int, params: Mapping[str, Any]) -> Saved:
        """The same of a prompt that finds room for three quarters of it in P's first step."""
        budget = self.prefill.config.scheduler_config.max_num_batched_tokens
        beside = prompt_of(budget - 3 * length // 4)
        name = self._name("beside")
        self.prefill.scheduler.add_request(self.prefill.request(name, beside))
        return self.save(length, params)

    def ask(self, saved: Saved, max_tokens: int = 1) -> Request:
        """D's request for a saved prompt, not yet given to its scheduler."""
        name = self._name("decode")
        if self.same_request_id:
            name = saved.name.rpartition("-")[0] + name[-9:]
        return self.decode.request(name, saved.prompt, saved.params, max_tokens)

    def find(self, saved: Saved, max_tokens: int = 1) -> Request:
        """The same, once D's connector finds the prompt: a store may need a moment after P."""
        request, connector = self.ask(saved, max_tokens), self.decode.scheduler.connector
        assert self.until(lambda: bool(connector.get_num_new_matched_tokens(request, 0)[0])), (
            f"prefill has saved a prompt of {len(saved.prompt)} tokens, but decode's connector "
            f"matched none of it in {self.patience_s} s"
        )
        return request

    def occupy(self) -> str:
        """Lets another request hold D's first blocks, so that P's block ids are taken there."""
        name = self._name("other")
        prompt = prompt_of(3 * BLOCK_SIZE + 4)
        self.decode.scheduler.add_request(self.decode.request(name, prompt, max_tokens=300))
        assert self.until(lambda: name in self.decode.worker.running), f"{name} did not start"
        return name

    def load(self, saved: Saved) -> Request:
        """D serves a saved prompt; returns after the step in which its own tokens ran."""
        request = self.find(saved)
        self.decode.scheduler.add_request(request)
        assert self.until(request.is_finished), (
            f"decode did not finish in {self.patience_s} s; its request is {request.status.name}"
        )
        return request

    def until(self, done: Callable[[], bool], *only: Instance) -> bool:
        """Steps P and D, or those given, until ``done``; False when patience ran out first."""
        end = time.monotonic() + self.patience_s
        while not done():
            if time.monotonic() > end:
                return False
            self.step(*only)
        return True

    def step(self, *only: Instance) -> None:
        """One step of each instance, as two engine cores would make them."""
        stepped = only or (self.prefill, self.decode)
        for instance in stepped:
            instance.step()
        if not any(instance.scheduler.running for instance in stepped):
            time.sleep(POLL_S)

    def shutdown(self) -> None:
        """Ends all four connectors."""
        self.prefill.shutdown()
        self.decode.shutdown()

    def _name(self, role: str) -> str:
        # vLLM puts eight hexadecimal digits behind the id that a client gives a request.
        self._count += 1
        return f"{role}-{self._count}-{self._count:08x}"
