"""What a person wants to know at the end of a run: one table, and each failure once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.markup import escape
from rich.table import Table

from conformance.features import BY_ID
from conformance.report import Cell, ConnectorResult, Report
from conformance.verdict import SEVERITY, Verdict, worst

STYLE = {
    Verdict.PASS: "green",
    Verdict.FAIL: "bold red",
    Verdict.DEGRADED: "yellow",
    Verdict.ERROR: "bold magenta",
    Verdict.NOT_RUN: "dim",
    Verdict.UNSUPPORTED: "dim",
    Verdict.XFAIL: "blue",
    Verdict.XPASS: "bold blue",
}

# With more connectors than this, connectors are rows.
WIDEST = 3
# What is known to fail is told by the expectations file, entry by entry.
_QUIET = {Verdict.PASS, Verdict.NOT_RUN, Verdict.XFAIL}


def table(report: Report) -> Table:
    """Verdicts by feature and connector."""
    return _by_feature(report) if len(report.connectors) <= WIDEST else _by_connector(report)


def failures(report: Report) -> Iterator[str]:
    """Every message that is not green, once a connector, with the cells it is about."""
    for column in report.connectors:
        for message, cells in _by_message(column).items():
            names = ", ".join(cell.check for cell in cells)
            yield f"{column.name} {escape(names)}: {escape(message)}"
            yield f"  [dim]replay: {escape(cells[0].replay)}[/dim]"


def _by_message(column: ConnectorResult) -> dict[str, list[Cell]]:
    groups: dict[str, list[Cell]] = {}
    for cell in column.cells:
        if cell.verdict not in _QUIET:
            groups.setdefault(f"{cell.verdict}: {cell.message}", []).append(cell)
    return groups


def _by_feature(report: Report) -> Table:
    found = Table(title="Verdicts by feature", title_justify="left")
    found.add_column("feature")
    for column in report.connectors:
        found.add_column(column.title)
    for feature in BY_ID.values():
        row = [feature.title]
        for column in report.connectors:
            row.append(_summary_of([c.verdict for c in column.cells if c.feature == feature.id]))
        if any(part != "" for part in row[1:]):
            found.add_row(*row)
    return found


def _by_connector(report: Report) -> Table:
    found = Table(title="Verdicts by connector", title_justify="left")
    for name in ("connector", "verdict", "cells"):
        found.add_column(name)
    for column in report.connectors:
        counts = Counter(cell.verdict for cell in column.cells)
        parts = [
            f"{counts[verdict]} {verdict}" for verdict in reversed(SEVERITY) if counts[verdict]
        ]
        found.add_row(column.title, _styled(worst(_ran(list(counts)))), ", ".join(parts))
    return found


def _summary_of(verdicts: list[Verdict]) -> str:
    if not verdicts:
        return ""
    passed = sum(v is Verdict.PASS for v in verdicts)
    return f"{_styled(worst(_ran(verdicts)))} {passed}/{len(verdicts)}"


def _ran(verdicts: list[Verdict]) -> list[Verdict]:
    return [verdict for verdict in verdicts if verdict is not Verdict.NOT_RUN]


def _styled(verdict: Verdict) -> str:
    return f"[{STYLE[verdict]}]{verdict}[/{STYLE[verdict]}]"
