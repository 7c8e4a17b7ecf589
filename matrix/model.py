"""The matrix as data: what the Markdown, the page and ``matrix.json`` all say."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from conformance.evidence import Rung
from conformance.report import Cell, Host, Suite, Timing
from conformance.report_parts import Contradiction
from conformance.verdict import Verdict


@dataclass(frozen=True)
class EngineBuild:
    """The vLLM build of a run."""

    distribution: str
    version: str
    device: str


@dataclass(frozen=True)
class Run:
    """Where cells come from: one report, without its cells."""

    run_id: str
    started: datetime
    state: Literal["running", "finished", "interrupted"]
    suite: Suite
    engine: EngineBuild | None
    host: Host
    packages: dict[str, str]
    timing: Timing
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Column:
    """One connector, as its newest report describes it; ``run`` is a position in the runs."""

    name: str
    title: str
    connector_class: str
    profile_digest: str
    declared: dict[str, Any]
    introspected: dict[str, Any]
    links: tuple[str, ...]
    run: int


@dataclass(frozen=True)
class Row:
    """One feature. ``known`` is false for an id that only a newer suite can explain."""

    id: str
    title: str
    meaning: str
    known: bool


@dataclass(frozen=True)
class CheckResult:
    """One check's cell in a report; ``run`` is the position of that report in the runs."""

    cell: Cell
    run: int


@dataclass(frozen=True)
class Reason:
    """Why checks did not pass, in their own words."""

    verdict: Verdict
    text: str


@dataclass(frozen=True)
class MatrixCell:
    """One feature of one connector.

    ``verdict`` is the worst of the checks that ran: ``not_run`` says nothing of the connector,
    so it neither dims a pass nor hides a failure, but it stays in ``total`` and ``tally``.
    ``reached`` is how far up the ladder the weakest pass got, among those with a ladder;
    ``without_ladder`` counts the passes that stand on recorded observations alone.
    """

    connector: str
    feature: str
    verdict: Verdict
    passed: int
    total: int
    tally: dict[Verdict, int]
    reached: Rung | None
    without_ladder: int
    reasons: tuple[Reason, ...]
    runs: tuple[int, ...]
    checks: tuple[CheckResult, ...]


@dataclass(frozen=True)
class Matrix:
    """Features (rows) by connectors (columns); ``runs`` is oldest first.

    ``contradictions`` are those of each connector's newest run.
    """

    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    cells: tuple[MatrixCell, ...]
    runs: tuple[Run, ...]
    contradictions: tuple[Contradiction, ...] = ()
    schema_version: Literal[1] = 1

    def cell(self, connector: str, feature: str) -> MatrixCell:
        """The cell of a connector and a feature; there is one for every pair."""
        return next(c for c in self.cells if (c.connector, c.feature) == (connector, feature))

    def older_runs(self, cell: MatrixCell) -> tuple[Run, ...]:
        """The runs behind a cell that are not its connector's newest."""
        newest = next(c.run for c in self.columns if c.name == cell.connector)
        return tuple(self.runs[index] for index in cell.runs if index != newest)
