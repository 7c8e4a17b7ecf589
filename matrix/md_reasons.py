"""Why cells are not green, in Markdown: each reason once, with what replays it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.verdict import Verdict
from matrix import known, provenance, words
from matrix.causes import Cause, Told, quiet
from matrix.mdtext import code, plain
from matrix.model import Column, Matrix, MatrixCell

MOST_REPLAYS = 3  # for one connector and one reason; the page has them all


def broken(causes: Sequence[Cause]) -> Iterator[str]:
    """The numbered reasons that cells refer to, each with its checks and their commands."""
    unknown = [cause for cause in causes if not cause.known]
    if unknown:
        yield from ("## What is not right", "")
        lead = "Each reason once, with every check that ended for it and the command that runs it"
        yield f"{lead} again."
        yield from _numbered(unknown)


def known_failures(causes: Sequence[Cause]) -> Iterator[str]:
    """Those of them that an expectations file names."""
    expected = [cause for cause in causes if cause.known]
    if expected:
        yield from (f"## {known.KNOWN}", "", known.KNOWN_LEAD)
        yield from _numbered(expected)


def _numbered(causes: Sequence[Cause]) -> Iterator[str]:
    for cause in causes:
        symbol = words.SYMBOL[cause.reason.verdict]
        yield from ("", f"{cause.number}. {symbol} {plain(cause.reason.text)}", "")
        for column, told in cause.connectors():
            yield from _replays(column, told)


def _replays(column: Column, told: Sequence[Told]) -> Iterator[str]:
    for one in told[:MOST_REPLAYS]:
        cell = one.result.cell
        replay = f": {code(cell.replay)}" if cell.replay else ""
        yield f"    - {plain(column.title)} {code(cell.check)} ({cell.level}){replay}"
    rest = told[MOST_REPLAYS:]
    if rest:
        names = ", ".join(code(one.result.cell.check) for one in rest)
        yield f"    - {plain(column.title)}, and {len(rest)} more: {names}"


def untried(matrix: Matrix) -> Iterator[str]:
    """What was not tried or is not supported, and what no report has."""
    causes, absent = quiet(matrix), list(_in_no_report(matrix))
    if causes or absent:
        yield from ("## Not tried, or not supported", "")
    for cause in causes:
        where = "; ".join(_where(column, told) for column, told in cause.connectors())
        yield f"- {words.SYMBOL[cause.reason.verdict]} {plain(cause.reason.text)}: {where}"
    if absent:
        yield f"- {words.SYMBOL[Verdict.NOT_RUN]} {words.NOBODY}:"
    yield from absent


def _where(column: Column, told: Sequence[Told]) -> str:
    return f"{plain(column.title)} ({words.checks(len(told))})"


def _in_no_report(matrix: Matrix) -> Iterator[str]:
    for column in matrix.columns:
        rows = [r for r in matrix.rows if matrix.cell(column.name, r.id).absence == "not_asked"]
        known = [row.id for row in rows if row.known]
        if rows:
            how = f": {code(words.run_line(column.name, *known))}" if known else ""
            titles = plain(words.listed(row.title for row in rows))
            yield f"    - {plain(column.title)} ({titles}){how}"


def older(matrix: Matrix) -> Iterator[str]:
    """Which cells come from a run that is not their connector's newest."""
    found: dict[str, list[MatrixCell]] = {}
    for cell in matrix.cells:
        for run in matrix.older_runs(cell):
            found.setdefault(provenance.older(run), []).append(cell)
    if found:
        yield from ("## Older results", "")
    for text, cells in found.items():
        yield f"- {plain(text)}"
        for column in matrix.columns:
            mine = {cell.feature for cell in cells if cell.connector == column.name}
            titles = words.listed(row.title for row in matrix.rows if row.id in mine)
            if titles:
                yield f"    - {plain(column.title)}: {plain(titles)}"
