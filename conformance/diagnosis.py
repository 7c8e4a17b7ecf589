"""From what a probe saw to one sentence: rules, tried in order, the first that fits speaks.

What makes every later observation worthless comes first (one server, no counters, other
traffic), then what can be named exactly, then what is only known to be missing.
"""

from __future__ import annotations

from collections.abc import Callable

from conformance.conclusion import Conclusion, Diagnosis
from conformance.evidence import Outcome, Rung
from conformance.seen import Seen
from conformance.symptoms import legs, proof, surroundings

Rule = Callable[[Seen], Diagnosis | None]
RULES: tuple[Rule, ...] = (
    surroundings.one_server,
    surroundings.stats_disabled,
    surroundings.other_traffic,
    surroundings.router_asks_others,
    surroundings.counters_stuck,
    surroundings.swapped,
    legs.prefill_returns_nothing,
    legs.refused,
    surroundings.warm,
    legs.decode_without_connector,
    surroundings.too_short,
    legs.differ,
    legs.transfer_failed,
    legs.prefill_without_connector,
    legs.lost_between,
    legs.nothing_found,
    proof.recomputed_in_part,
    proof.broken_books,
    proof.insensitive,
    proof.unused,
    proof.wrong_answer,
    proof.not_moved,
    proof.blind,
    proof.no_oracle,
)


def diagnose(seen: Seen) -> Diagnosis:
    """What is wrong, or that nothing is."""
    return next(filter(None, (rule(seen) for rule in RULES)), None) or _transfers(seen)


def _transfers(seen: Seen) -> Diagnosis:
    causal = seen.outcome(Rung.CAUSALITY) is Outcome.HELD
    shown = (
        "decode's answer follows the KV it is given"
        if causal
        else "as far as counters and the answer tell; it was not tried whether decode's answer "
        f"follows the KV ({seen.summary(Rung.CAUSALITY)})"
    )
    sentence = (
        f"{seen.external} of {seen.prompt_tokens} prompt tokens came from outside, and the answer "
        f"is right: {shown}"
    )
    return Diagnosis(Conclusion.TRANSFERS, "transfers", sentence)
