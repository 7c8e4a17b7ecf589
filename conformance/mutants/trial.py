"""One check tried on one mutant: what had to come of it, and what came."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict

from conformance.verdict import Verdict

# What a mutant is made of: a real connector in real servers, or a scripted server.
Over = Literal["example", "nixl", "scripted"]

RED = frozenset({Verdict.FAIL, Verdict.DEGRADED, Verdict.ERROR})


class Wanted(StrEnum):
    """What has to come of a check on a mutant."""

    RED = "red"  # it names the check as one that sees the fault
    GREEN = "green"  # the fault does not concern the check
    SEEN = "seen"  # nothing is wanted: what comes of it is only written down


class Trial(BaseModel):
    """A cell of the kill matrix. ``model`` and ``deployment`` are in the run's own report."""

    model_config = ConfigDict(extra="forbid")

    mutant: str
    over: Over
    check: str
    wanted: Wanted
    verdict: Verdict
    message: str = ""
    duration_s: float = 0.0

    @property
    def red(self) -> bool:
        """Whether the check saw something."""
        return self.verdict in RED

    @property
    def survived(self) -> bool:
        """Whether a check that had to see the fault did not."""
        return self.wanted is Wanted.RED and not self.red

    @property
    def strayed(self) -> bool:
        """Whether a check that the fault does not concern is not green."""
        return self.wanted is Wanted.GREEN and self.verdict is not Verdict.PASS
