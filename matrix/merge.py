"""Which result a cell shows, when several reports have the connector.

For every check: the newest report by ``started`` that ran it. A ``not_run`` never replaces a
result, since "could not be tried here" in tonight's run says nothing against what yesterday's
run measured elsewhere; such a cell names the older run it comes from. Anything else replaces,
whatever it says, and what it replaced is kept beside it where the two disagree.

A reported ``pass``, or ``xpass``, counts as one only if :func:`conformance.verdict.decide` agrees
from the evidence in the same report, and if no control speaks against the run
(:mod:`matrix.trust`). Otherwise the check is an ``error``: no green cell without proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from conformance.report import Cell, Report
from conformance.verdict import SEVERITY, Verdict, decide, worst
from matrix.parts import CheckResult, Replaced

Results = tuple[CheckResult, ...]


def oldest_first(reports: Iterable[Report]) -> list[Report]:
    """The reports by age, each once: the order they were given in does not matter."""
    # The whole text settles ties, and drops a report that was given twice.
    unique = {report.model_dump_json(): report for report in reports}
    by_age = sorted(unique.items(), key=lambda item: (utc(item[1].started), item[0]))
    return [report for _, report in by_age]


def utc(moment: datetime) -> datetime:
    """The same moment in UTC, which is also what a moment without a zone is taken to be in."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def latest(name: str, reports: Sequence[Report], distrusts: Sequence[str]) -> Mapping[str, Results]:
    """By check id, what to show for a connector; both sequences are oldest first."""
    history: dict[str, list[Results]] = {}
    for index, (report, distrust) in enumerate(zip(reports, distrusts, strict=True)):
        for check, found in _by_check(name, report, index, distrust).items():
            history.setdefault(check, []).append(found)
    return {check: _shown(results) for check, results in history.items()}


def settled(results: Iterable[CheckResult]) -> Verdict:
    """What results add up to: the worst that ran."""
    return worst(r.cell.verdict for r in results if r.cell.verdict is not Verdict.NOT_RUN)


def _by_check(name: str, report: Report, index: int, distrust: str) -> Mapping[str, Results]:
    grouped: dict[str, Results] = {}
    cells = [cell for column in report.connectors if column.name == name for cell in column.cells]
    for cell in cells:
        result = CheckResult(cell=_proven(cell, distrust), run=index)
        grouped[cell.check] = (*grouped.get(cell.check, ()), result)
    return grouped


def _shown(history: Sequence[Results]) -> Results:
    ran = [results for results in history if settled(results) is not Verdict.NOT_RUN]
    if not ran:
        return history[-1]
    replaced = tuple(_disagreeing(ran[:-1], settled(ran[-1])))
    return tuple(replace(result, replaced=replaced) for result in ran[-1])


def _disagreeing(older: Sequence[Results], shown: Verdict) -> Iterator[Replaced]:
    for results in reversed(older):
        if settled(results) is not shown:
            worst_first = sorted(results, key=lambda r: SEVERITY.index(r.cell.verdict))
            told = next(r for r in worst_first if r.cell.verdict is settled(results))
            yield Replaced(told.cell.verdict, told.cell.message, told.run)


def _proven(cell: Cell, distrust: str) -> Cell:
    if cell.verdict not in (Verdict.PASS, Verdict.XPASS):
        return cell
    supported, why = decide(cell.evidence)
    if supported is not Verdict.PASS:
        return _unproven(cell, f"but its evidence says {supported.value}: {why}")
    return _unproven(cell, f"but {distrust}") if distrust else cell


def _unproven(cell: Cell, why: str) -> Cell:
    message = f"the report says {cell.verdict}, {why}"
    return cell.model_copy(update={"verdict": Verdict.ERROR, "message": message})
