"""One connector over all reports: what describes it, and what its cells add up to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from conformance.evidence import Rung
from conformance.report import ConnectorResult, Report
from conformance.report_parts import Contradiction
from matrix.merge import settled
from matrix.model import Absence, Column, MatrixCell
from matrix.shards import shards_of
from matrix.standing import shims, spoken, standing


def column_of(name: str, reports: Sequence[Report], cells: Sequence[MatrixCell]) -> Column:
    """A connector as its newest report describes it, with what ``cells`` add up to."""
    run, newest = _newest(name, reports)
    checks = [result for cell in cells for result in cell.checks]
    tried = [result.cell for result in checks]
    stands = standing(tried)
    return Column(
        name=name,
        title=newest.title or name,
        connector_class=newest.connector_class,
        profile_digest=newest.profile_digest,
        declared=newest.declared,
        introspected=newest.introspected,
        links=tuple(newest.links),
        run=run,
        standing=stands,
        verdict=settled(checks),
        passed=sum(cell.passed for cell in cells),
        total=len(checks),
        tally=dict(Counter(cell.verdict for cell in tried)),
        reached=_weakest(cells),
        reason=None if stands.has_row else spoken(tried),
        shims=shims(tried),
        shards=shards_of(name, run, reports),
    )


def absence(name: str, reports: Sequence[Report]) -> Absence:
    """Why a connector has no check of some feature: a run of all planned none, or none was asked.

    Checks apply to a connector or do not, such as those of several connectors in one.
    """
    whole = any(report.connector(name) and _is_whole(report) for report in reports)
    return "none_planned" if whole else "not_asked"


def contradictions(name: str, reports: Sequence[Report]) -> tuple[Contradiction, ...]:
    """What the newest run of a connector, and its shards, saw against what is declared."""
    run, _ = _newest(name, reports)
    told = [c for i in (*shards_of(name, run, reports), run) for c in reports[i].contradictions]
    mine = [found for found in told if found.connector == name]
    return tuple(found for i, found in enumerate(mine) if found not in mine[:i])


def _newest(name: str, reports: Sequence[Report]) -> tuple[int, ConnectorResult]:
    run = max(i for i, report in enumerate(reports) if report.connector(name))
    return run, next(c for c in reports[run].connectors if c.name == name)


def _is_whole(report: Report) -> bool:
    """Whether the run was asked for every check, and not for some features or checks only."""
    return all(report.options.get(narrowing) == [] for narrowing in ("features", "checks"))


def _weakest(cells: Iterable[MatrixCell]) -> Rung | None:
    """The least that a pass with a ladder stands on; ``None`` where one stands on nothing."""
    laddered = [cell for cell in cells if cell.passed > cell.without_ladder]
    reached = [cell.reached for cell in laddered if cell.reached]
    return min(reached, key=list(Rung).index) if len(reached) == len(laddered) > 0 else None
