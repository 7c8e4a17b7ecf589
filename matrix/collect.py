"""Reports in, one matrix out: the pure function behind every rendering."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from conformance.errors import ReportError
from conformance.evidence import Rung
from conformance.features import BY_ID, FEATURES
from conformance.report import Cell, Report
from conformance.verdict import SEVERITY, Verdict
from matrix import words
from matrix.columns import absence, column_of, contradictions
from matrix.known import flaky
from matrix.merge import Results, latest, oldest_first, settled
from matrix.model import Absence, Matrix, MatrixCell
from matrix.parts import CheckResult, Reason, Row
from matrix.runs import run_of
from matrix.standing import shims
from matrix.trust import distrusts


def collect(reports: Sequence[Report]) -> Matrix:
    """The matrix that these reports add up to, whatever their order.

    Raises :class:`ReportError` where there is nothing to show.
    """
    ordered = oldest_first(reports)
    names = sorted({column.name for report in ordered for column in report.connectors})
    if not names:
        raise ReportError(_nothing(len(ordered)))
    against = distrusts(ordered)
    results = {name: latest(name, ordered, against) for name in names}
    rows = _rows(results.values())
    cells = {
        n: tuple(_cell(n, row.id, results[n], absence(n, ordered)) for row in rows) for n in names
    }
    return Matrix(
        rows=rows,
        columns=tuple(column_of(name, ordered, cells[name]) for name in names),
        cells=tuple(cell for row in zip(*cells.values(), strict=True) for cell in row),
        runs=tuple(run_of(report, why) for report, why in zip(ordered, against, strict=True)),
        contradictions=tuple(found for name in names for found in contradictions(name, ordered)),
        flaky=flaky(ordered),
    )


def _nothing(count: int) -> str:
    if not count:
        return "no reports to render: give at least one run's folder or report.json"
    return (
        f"none of the {count} report(s) has a connector: those runs ended before any check was "
        "planned; their `problems` say why"
    )


def _rows(columns: Iterable[Mapping[str, Results]]) -> tuple[Row, ...]:
    found = {r.cell.feature for column in columns for group in column.values() for r in group}
    known = tuple(Row(f.id, f.title, f.meaning, known=True) for f in FEATURES)
    return known + tuple(_unknown_row(feature) for feature in sorted(found - set(BY_ID)))


def _unknown_row(feature: str) -> Row:
    title = feature.replace("-", " ").strip().capitalize() or "(no feature)"
    return Row(feature, title, "A feature of a newer suite than the one that drew this.", False)


def _cell(
    connector: str, feature: str, by_check: Mapping[str, Results], absent: Absence
) -> MatrixCell:
    found = [r for group in by_check.values() for r in group if r.cell.feature == feature]
    checks = tuple(sorted(found, key=lambda r: SEVERITY.index(r.cell.verdict)))
    passes = [result.cell for result in checks if result.cell.verdict is Verdict.PASS]
    return MatrixCell(
        connector=connector,
        feature=feature,
        verdict=settled(checks),
        passed=len(passes),
        total=len(checks),
        tally=dict(Counter(result.cell.verdict for result in checks)),
        reached=_weakest(passes),
        without_ladder=sum(not cell.evidence.proofs for cell in passes),
        reasons=_reasons(checks),
        runs=tuple(sorted({result.run for result in checks})),
        shims=shims([result.cell for result in checks]),
        absence=None if checks else absent,
        checks=checks,
    )


def _weakest(passes: Iterable[Cell]) -> Rung | None:
    reached = [cell.evidence.reached for cell in passes if cell.evidence.proofs]
    known = [rung for rung in reached if rung]
    return min(known, key=list(Rung).index) if known and len(known) == len(reached) else None


def _reasons(checks: Iterable[CheckResult]) -> tuple[Reason, ...]:
    told = [r.cell for r in checks if r.cell.verdict is not Verdict.PASS]
    return tuple(dict.fromkeys(words.reason(cell) for cell in told))
