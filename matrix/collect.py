"""Reports in, one matrix out: the pure function behind every rendering."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from conformance.errors import ReportError
from conformance.evidence import Rung
from conformance.features import BY_ID, FEATURES
from conformance.report import Cell, Report
from conformance.report_parts import Contradiction
from conformance.verdict import SEVERITY, Verdict, worst
from matrix import words
from matrix.merge import Results, latest, oldest_first, utc
from matrix.model import Column, EngineBuild, Matrix, MatrixCell, Reason, Row, Run


def collect(reports: Sequence[Report]) -> Matrix:
    """The matrix that these reports add up to, whatever their order.

    Raises :class:`ReportError` where there is nothing to show.
    """
    ordered = oldest_first(reports)
    names = sorted({column.name for report in ordered for column in report.connectors})
    if not names:
        raise ReportError(_nothing(len(ordered)))
    results = {name: latest(name, ordered) for name in names}
    rows = _rows(results.values())
    return Matrix(
        rows=rows,
        columns=tuple(_column(name, ordered) for name in names),
        cells=tuple(_cell(name, row.id, results[name]) for row in rows for name in names),
        runs=tuple(_run(report) for report in ordered),
        contradictions=tuple(found for name in names for found in _contradictions(name, ordered)),
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


def _column(name: str, reports: Sequence[Report]) -> Column:
    run = max(i for i, report in enumerate(reports) if report.connector(name))
    newest = next(c for c in reports[run].connectors if c.name == name)
    return Column(
        name=name,
        title=newest.title or name,
        connector_class=newest.connector_class,
        profile_digest=newest.profile_digest,
        declared=newest.declared,
        introspected=newest.introspected,
        links=tuple(newest.links),
        run=run,
    )


def _contradictions(name: str, reports: Sequence[Report]) -> list[Contradiction]:
    newest = next(report for report in reversed(reports) if report.connector(name))
    return [found for found in newest.contradictions if found.connector == name]


def _cell(connector: str, feature: str, by_check: Mapping[str, Results]) -> MatrixCell:
    found = [r for group in by_check.values() for r in group if r.cell.feature == feature]
    checks = tuple(sorted(found, key=lambda r: SEVERITY.index(r.cell.verdict)))
    tally = Counter(result.cell.verdict for result in checks)
    passes = [result.cell for result in checks if result.cell.verdict is Verdict.PASS]
    return MatrixCell(
        connector=connector,
        feature=feature,
        verdict=worst(verdict for verdict in tally if verdict is not Verdict.NOT_RUN),
        passed=len(passes),
        total=len(checks),
        tally=dict(tally),
        reached=_weakest(passes),
        without_ladder=sum(not cell.evidence.proofs for cell in passes),
        reasons=_reasons(checks),
        runs=tuple(sorted({result.run for result in checks})),
        checks=checks,
    )


def _weakest(passes: Iterable[Cell]) -> Rung | None:
    reached = [cell.evidence.reached for cell in passes if cell.evidence.proofs]
    known = [rung for rung in reached if rung]
    return min(known, key=list(Rung).index) if known and len(known) == len(reached) else None


def _reasons(checks: Results) -> tuple[Reason, ...]:
    told = [r.cell for r in checks if r.cell.verdict is not Verdict.PASS]
    return tuple(dict.fromkeys(words.reason(cell) for cell in told))


def _run(report: Report) -> Run:
    engine = report.engine
    return Run(
        run_id=report.run_id,
        started=utc(report.started),
        state=report.state,
        suite=report.suite,
        engine=EngineBuild(engine.distribution, engine.version, engine.device) if engine else None,
        host=report.host,
        packages=dict(sorted(report.packages.items())),
        timing=report.timing,
        problems=tuple(report.problems),
    )
