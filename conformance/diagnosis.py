"""From what a probe saw to one sentence: rules, tried in order, the first that fits speaks.

What makes every later observation worthless comes first (one server, no counters, other
traffic), then what can be named exactly, then what is only known to be missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from conformance.evidence import Outcome, Rung
from conformance.seen import Seen


class Conclusion(StrEnum):
    """Whether the pair transfers."""

    TRANSFERS = "transfers"
    DOES_NOT = "does not transfer"
    UNKNOWN = "could not tell"


@dataclass(frozen=True)
class Diagnosis:
    """``cause``: a stable word. ``fix``: what to do, where something is to be done."""

    conclusion: Conclusion
    cause: str
    sentence: str
    fix: str = ""


Rule = Callable[[Seen], Diagnosis | None]


def no(cause: str, sentence: str, fix: str) -> Diagnosis:
    """It does not transfer."""
    return Diagnosis(Conclusion.DOES_NOT, cause, sentence, fix)


def unknown(cause: str, sentence: str, fix: str) -> Diagnosis:
    """It could not be told."""
    return Diagnosis(Conclusion.UNKNOWN, cause, sentence, fix)


def diagnose(seen: Seen) -> Diagnosis:
    """What is wrong, or that nothing is."""
    from conformance.symptoms import RULES

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
