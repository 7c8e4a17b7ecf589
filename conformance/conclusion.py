"""What a probe concludes: the words, and a diagnosis in them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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


def no(cause: str, sentence: str, fix: str) -> Diagnosis:
    """It does not transfer."""
    return Diagnosis(Conclusion.DOES_NOT, cause, sentence, fix)


def unknown(cause: str, sentence: str, fix: str) -> Diagnosis:
    """It could not be told."""
    return Diagnosis(Conclusion.UNKNOWN, cause, sentence, fix)
