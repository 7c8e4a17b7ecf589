"""Which result a cell shows, when several reports have the connector.

For every check: the newest report by ``started`` that ran it. A ``not_run`` never replaces a
result, since "could not be tried here" in tonight's run says nothing against what yesterday's
run measured elsewhere; such a cell names the older run it comes from. Anything else replaces,
whatever it says.

A reported ``pass`` counts as one only if :func:`conformance.verdict.decide` agrees from the
evidence in the same report. Otherwise the check is an ``error``: no green cell without proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from conformance.report import Cell, Report
from conformance.verdict import Verdict, decide
from matrix.model import CheckResult

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


def latest(name: str, reports: Sequence[Report]) -> Mapping[str, Results]:
    """By check id, what to show for a connector; ``reports`` are oldest first."""
    shown: dict[str, Results] = {}
    for index, report in enumerate(reports):
        for check, found in _by_check(name, report, index).items():
            if _ran(found) or not _ran(shown.get(check, ())):
                shown[check] = found
    return shown


def _by_check(name: str, report: Report, index: int) -> Mapping[str, Results]:
    grouped: dict[str, Results] = {}
    cells = [cell for column in report.connectors if column.name == name for cell in column.cells]
    for cell in cells:
        result = CheckResult(cell=_proven(cell), run=index)
        grouped[cell.check] = (*grouped.get(cell.check, ()), result)
    return grouped


def _ran(results: Results) -> bool:
    return any(result.cell.verdict is not Verdict.NOT_RUN for result in results)


def _proven(cell: Cell) -> Cell:
    if cell.verdict is not Verdict.PASS:
        return cell
    supported, why = decide(cell.evidence)
    if supported is Verdict.PASS:
        return cell
    message = f"the report says pass, but its evidence says {supported.value}: {why}"
    return cell.model_copy(update={"verdict": Verdict.ERROR, "message": message})
