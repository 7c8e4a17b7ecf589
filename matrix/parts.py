"""What the matrix is made of: runs, rows, results, and what speaks for or against them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from conformance.report import Cell, Control, Host, Suite, Timing
from conformance.report_parts import ExpectationsResult, RegistryGate
from conformance.verdict import Verdict


class Standing(StrEnum):
    """How far a connector came; what its line or row in the matrix is grouped by.

    ``no_transfer``: it starts and fails the check that all others stand on. ``refused``: it does
    not start, whether it says why or not. ``not_tried``: no check on it came to a judgement.
    """

    RAN = "ran"
    SHIM = "through_shim"
    NO_TRANSFER = "no_transfer"
    REFUSED = "refused"
    NOT_TRIED = "not_tried"

    @property
    def has_row(self) -> bool:
        """Whether its cells differ enough to be shown one by one."""
        return self not in (Standing.REFUSED, Standing.NOT_TRIED)


@dataclass(frozen=True)
class EngineBuild:
    """The vLLM build of a run."""

    distribution: str
    version: str
    device: str


@dataclass(frozen=True)
class ControlResult:
    """A connector that fakes its transfers, and whether the run found it out.

    ``caught`` is null where it could not be tried.
    """

    control: Control
    caught: bool | None


@dataclass(frozen=True)
class Run:
    """Where cells come from: one report, without its cells.

    ``distrust``: why no pass of it can be believed; empty where nothing speaks against it.
    ``registry`` only where it decided the run's exit code, which is a run of all connectors.
    ``expectations``: the file of known failures that it was given, and what became of each entry.
    """

    run_id: str
    started: datetime
    state: Literal["running", "finished", "interrupted"]
    suite: Suite
    engine: EngineBuild | None
    host: Host
    packages: dict[str, str]
    timing: Timing
    problems: tuple[str, ...]
    controls: tuple[ControlResult, ...] = ()
    distrust: str = ""
    registry: RegistryGate | None = None
    expectations: ExpectationsResult | None = None


@dataclass(frozen=True)
class Row:
    """One feature. ``known`` is false for an id that only a newer suite can explain."""

    id: str
    title: str
    meaning: str
    known: bool


@dataclass(frozen=True)
class Replaced:
    """What an older run said of a check, where a newer one says something else."""

    verdict: Verdict
    message: str
    run: int


@dataclass(frozen=True)
class CheckResult:
    """One check's cell in a report; ``run`` is the position of that report in the runs.

    ``replaced``: the results of older runs that disagree with it, newest first.
    """

    cell: Cell
    run: int
    replaced: tuple[Replaced, ...] = ()


@dataclass(frozen=True)
class Reason:
    """Why checks did not pass, in their own words."""

    verdict: Verdict
    text: str


@dataclass(frozen=True)
class Flaky:
    """A check that an expectations file lets pass or fail, over all runs that expected it to.

    ``failed`` of ``tried`` runs, those alone in which it passed or failed as expected; ``reason``
    is the newest run's.
    """

    connector: str
    check: str
    failed: int
    tried: int
    reason: str
