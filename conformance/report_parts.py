"""Sections of ``report.json`` that say how names and declarations stand against what was seen."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from conformance.verdict import Verdict


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Exemption(_Model):
    """Why a registered connector needs no profile, where that can be read, and the first known
    vLLM version that registers it.
    """

    reason: str = Field(min_length=20)
    link: str = Field(pattern=r"^https://")
    seen_in: str


class RegistryGate(_Model):
    """The engine's registry against the profiles.

    ``decides``: the run was one of all connectors, so this decides its exit code. ``profiles``:
    by registered class, the profiles that name it; ``missing``: registered, with neither profile
    nor exemption; ``stale``: exemptions that no longer say anything, with the reason;
    ``problem``: why the registry could not be read.
    """

    decides: bool
    vllm: str | None = None
    platform: str | None = None
    registered: list[str] = Field(default_factory=list)
    profiles: dict[str, list[str]] = Field(default_factory=dict)
    exempt: dict[str, Exemption] = Field(default_factory=dict)
    missing: list[str] = Field(default_factory=list)
    stale: dict[str, str] = Field(default_factory=dict)
    problem: str | None = None


class Contradiction(_Model):
    """Something a profile or a documentation page says, and what was seen instead.

    ``kind`` and ``name``: which feature, platform or capability; ``source``: where it is declared.
    """

    connector: str
    kind: Literal["feature", "platform", "capability"]
    name: str
    declared: str
    observed: str
    source: str


class Expected(_Model):
    """What an expectations file says of a cell.

    ``at``: file and line of the entry; ``verdict``: how the cell is expected to fail; ``seen``:
    what it was judged, whatever is expected.
    """

    at: str
    verdict: Verdict
    seen: Verdict
    reason: str
    link: str | None = None
    expires: date
    flaky: bool = False

    @property
    def words(self) -> str:
        """The expectation in a line."""
        kind = "flaky, at times " if self.flaky else ""
        link = f" ({self.link})" if self.link else ""
        return f"{kind}{self.verdict}: {self.reason}{link}"


class EntryState(StrEnum):
    """What became of an entry of an expectations file in a run; the first three make it red.

    ``stale``: a cell that it is about no longer fails so; ``unmatched``: it is about no cell;
    ``expired``: its last day is over, so it counted for nothing. ``other``: a cell failed in
    another way; ``met``: as it says; ``untried``: no cell came to a judgement; ``elsewhere``: its
    condition does not hold here.
    """

    STALE = "stale"
    UNMATCHED = "unmatched"
    EXPIRED = "expired"
    OTHER = "other"
    MET = "met"
    UNTRIED = "untried"
    ELSEWHERE = "elsewhere"


class EntryResult(_Model):
    """One entry, and what became of it.

    ``cells``: the names of those it was applied to; ``failed``: how many of them failed as it
    says; ``passed``: how many passed; ``note``: which ones made it stale, or why it did not count.
    """

    line: int
    connector: str
    check: str
    verdict: Verdict
    reason: str
    link: str | None = None
    when: str = ""
    expires: date
    flaky: bool = False
    state: EntryState
    note: str = ""
    cells: list[str] = Field(default_factory=list)
    failed: int = 0
    passed: int = 0


class ExpectationsResult(_Model):
    """The expectations file of a run, as it was on ``day``."""

    file: str
    digest: str
    day: date
    entries: list[EntryResult] = Field(default_factory=list)


class AssumptionResult(_Model):
    """Something that the suite takes for granted of vLLM, as it was found on a plain server.

    ``held``: ``None`` where it could not be tried, and ``seen`` then says why; ``relied_on``: files
    of the suite; ``source``: the file of vLLM that it is read from.
    """

    id: str
    says: str
    held: bool | None
    seen: str = ""
    relied_on: list[str] = Field(default_factory=list)
    source: str = ""
