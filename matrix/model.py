"""The matrix as data: what the Markdown, the page and ``matrix.json`` all say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from conformance.evidence import Rung
from conformance.report_parts import Contradiction
from conformance.verdict import Verdict
from matrix.parts import CheckResult, Flaky, Reason, Row, Run, Standing

# Why a cell has no check: a run of every check planned none, or no run was one of every check.
Absence = Literal["none_planned", "not_asked"]


@dataclass(frozen=True)
class Column:
    """One connector, as its newest report describes it; ``run`` is a position in the runs.

    ``verdict``, ``passed``, ``total``, ``tally`` and ``reached`` are over all its checks, as
    :class:`MatrixCell` has them over one feature's. ``reason`` is why it has no row of cells,
    and ``shims`` what its results were won through. ``shards`` are other runs that tried other
    checks of it as part of the same work.
    """

    name: str
    title: str
    connector_class: str
    profile_digest: str
    declared: dict[str, Any]
    introspected: dict[str, Any]
    links: tuple[str, ...]
    run: int
    standing: Standing
    verdict: Verdict
    passed: int
    total: int
    tally: dict[Verdict, int]
    reached: Rung | None
    reason: Reason | None
    shims: tuple[str, ...]
    shards: tuple[int, ...]


@dataclass(frozen=True)
class MatrixCell:
    """One feature of one connector.

    ``verdict`` is the worst of the checks that ran: ``not_run`` says nothing of the connector,
    so it neither dims a pass nor hides a failure, but it stays in ``total`` and ``tally``.
    ``reached`` is how far up the ladder the weakest pass got, among those with a ladder;
    ``without_ladder`` counts the passes that stand on recorded observations alone.
    ``shims``: without which the checks that ran would not have run on their platform.
    ``absence`` is null where there are checks.
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
    shims: tuple[str, ...]
    absence: Absence | None
    checks: tuple[CheckResult, ...]


@dataclass(frozen=True)
class Matrix:
    """Features by connectors; ``runs`` is oldest first, ``columns`` are by name.

    ``contradictions`` are those of each connector's newest run and its shards; ``flaky`` are the
    checks that are known to come and go, with how often each failed over all runs.
    """

    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    cells: tuple[MatrixCell, ...]
    runs: tuple[Run, ...]
    contradictions: tuple[Contradiction, ...] = ()
    flaky: tuple[Flaky, ...] = ()
    schema_version: Literal[2] = 2

    def cell(self, connector: str, feature: str) -> MatrixCell:
        """The cell of a connector and a feature; there is one for every pair."""
        return next(c for c in self.cells if (c.connector, c.feature) == (connector, feature))

    def of(self, connector: str) -> tuple[MatrixCell, ...]:
        """A connector's cells that have checks, in the order of the rows."""
        return tuple(c for c in self.cells if c.connector == connector and c.checks)

    def grouped(self) -> dict[Standing, tuple[Column, ...]]:
        """The connectors by standing, each group by name; without empty groups."""
        groups = {s: tuple(c for c in self.columns if c.standing is s) for s in Standing}
        return {standing: found for standing, found in groups.items() if found}

    def older_runs(self, cell: MatrixCell) -> tuple[Run, ...]:
        """The runs behind a cell that are neither its connector's newest nor a shard of it."""
        column = next(c for c in self.columns if c.name == cell.connector)
        current = {column.run, *column.shards}
        return tuple(self.runs[index] for index in cell.runs if index not in current)
