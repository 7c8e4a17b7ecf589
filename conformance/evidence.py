"""The evidence ladder as data: what a verdict stands on.

Five steps, each of which catches what the one below cannot (`DESIGN`: three traps):

1. ``accounting``: the decode instance's own counters say the tokens came from outside;
2. ``movement``: the connector's byte or operation counters moved, on the right side;
3. ``causality``: the answer changes when the transferred KV is another's, or damaged;
4. ``parity``: token ids and log-probabilities equal the reference's;
5. ``control``: without the handoff, the same server computes everything itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Rung(StrEnum):
    """The steps of the ladder, lowest first."""

    ACCOUNTING = "accounting"
    MOVEMENT = "movement"
    CAUSALITY = "causality"
    PARITY = "parity"
    CONTROL = "control"


class Outcome(StrEnum):
    """What one step showed."""

    HELD = "held"
    BROKEN = "broken"  # a requirement is violated
    RECOMPUTED = "recomputed"  # the step shows that decode computed the KV itself
    BLIND = "blind"  # the control still shows the evidence: the detector proves nothing
    NOT_APPLICABLE = "not_applicable"  # summary says why


class Step(BaseModel):
    """One step of the ladder: what was seen, with the figures behind it."""

    model_config = ConfigDict(extra="forbid")

    name: Rung
    outcome: Outcome
    summary: str
    figures: dict[str, Any] = Field(default_factory=dict)


class Proof(BaseModel):
    """The ladder climbed for one request."""

    model_config = ConfigDict(extra="forbid")

    subject: str
    steps: list[Step] = Field(default_factory=list)

    @property
    def reached(self) -> Rung | None:
        """The highest step of the unbroken run of held or not applicable steps from below."""
        return _climbed(self.steps)


class Fact(BaseModel):
    """An observation beside the ladder, such as an error body, that a check asserted on."""

    model_config = ConfigDict(extra="forbid")

    what: str
    seen: Any = None


class Evidence(BaseModel):
    """Everything recorded by one check."""

    model_config = ConfigDict(extra="forbid")

    proofs: list[Proof] = Field(default_factory=list)
    facts: list[Fact] = Field(default_factory=list)

    @property
    def reached(self) -> Rung | None:
        """How far up the ladder the weakest proof got; ``None`` without any proof."""
        return _weakest([proof.reached for proof in self.proofs])


def _climbed(steps: Sequence[Step]) -> Rung | None:
    top: Rung | None = None
    for rung in Rung:
        outcomes = {step.outcome for step in steps if step.name is rung}
        if not outcomes or outcomes - {Outcome.HELD, Outcome.NOT_APPLICABLE}:
            return top
        if Outcome.HELD in outcomes:
            top = rung
    return top


def _weakest(reached: Sequence[Rung | None]) -> Rung | None:
    known = [rung for rung in reached if rung]
    if not known or len(known) < len(reached):
        return None
    return min(known, key=list(Rung).index)
