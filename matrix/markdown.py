"""The matrix as a page of Markdown, in the manner of vLLM's own compatibility matrices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from conformance.verdict import Verdict
from matrix import provenance, words
from matrix.footnotes import Footnotes
from matrix.mdtext import cell_code, code, link, plain
from matrix.model import Column, Matrix, MatrixCell, Row


def render_markdown(matrix: Matrix) -> str:
    """The whole page; the same matrix always gives the same text."""
    notes = Footnotes(matrix)
    table = list(_features(matrix, notes))  # first: it is what numbers the notes
    sections = (
        [f"# {words.TITLE}", "", *_headline(matrix)],
        ["## Features × connectors", "", *table, "", *_legend()],
        list(notes.lines()),
        ["## What a green cell stands on", "", words.LADDER, "", *_ladder()],
        ["## Cells that are not green", "", *_not_green(matrix)],
        [*_contradictions(matrix)],
        ["## Runs", "", *_runs(matrix), *_problems(matrix)],
        ["## Connectors", "", *_connectors(matrix)],
    )
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _headline(matrix: Matrix) -> Iterator[str]:
    for name, text in provenance.headline(matrix):
        yield f"- **{name}:** {plain(text)}"


def _features(matrix: Matrix, notes: Footnotes) -> Iterator[str]:
    yield _row(["Feature", *(plain(column.title) for column in matrix.columns)])
    yield _row([":---", *(":---:" for _ in matrix.columns)])
    for row in matrix.rows:
        cells = (matrix.cell(column.name, row.id) for column in matrix.columns)
        yield _row(
            [f"**{plain(row.title)}**", *(_verdict(cell) + notes.marks(cell) for cell in cells)]
        )


def _row(texts: Iterable[str]) -> str:
    return "| " + " | ".join(texts) + " |"


def _verdict(cell: MatrixCell) -> str:
    reach = words.reach(cell) if cell.verdict is Verdict.PASS else ""
    texts = [words.counts(cell), words.others(cell)]
    counted = ", ".join(text for text in texts if text)
    return f"{words.SYMBOL[cell.verdict]} {counted}" + (f" · {reach}" if reach else "")


def _legend() -> Iterator[str]:
    yield f"**Legend.** {words.COUNTS}"
    yield ""
    for verdict, meaning in words.legend():
        yield f"- {words.SYMBOL[verdict]} **{words.label(verdict)}**: {meaning}"


def _ladder() -> Iterator[str]:
    for number, (rung, meaning) in enumerate(words.RUNG_MEANING.items(), start=1):
        yield f"{number}. **{rung.value}**: {meaning}"


def _not_green(matrix: Matrix) -> Iterator[str]:
    yield "Every check that did not pass, why, and the command that runs it again."
    pairs = [(column, row) for column in matrix.columns for row in matrix.rows]
    for column, row in pairs:
        yield from _reasons(column, row, matrix.cell(column.name, row.id))
    yield from _absent((c, r) for c, r in pairs if not matrix.cell(c.name, r.id).checks)


def _reasons(column: Column, row: Row, cell: MatrixCell) -> Iterator[str]:
    if cell.reasons:
        yield from ("", f"### {plain(column.title)} · {plain(row.title)}: {_verdict(cell)}", "")
    for reason in cell.reasons:
        yield f"- {words.SYMBOL[reason.verdict]} {plain(reason.text)}"
        told = (check.cell for check in cell.checks)
        for failed in (c for c in told if words.reason(c) == reason):
            replay = f": {code(failed.replay)}" if failed.replay else ""
            yield f"    - {code(failed.check)} ({failed.level}){replay}"


def _absent(pairs: Iterable[tuple[Column, Row]]) -> Iterator[str]:
    lines = [
        f"- {plain(column.title)} · {plain(row.title)}" + _how(column, row) for column, row in pairs
    ]
    if lines:
        yield from ("", "### Not run by anyone", "", f"{words.NOBODY}.", "", *lines)


def _how(column: Column, row: Row) -> str:
    return f": {code(words.run_line(column.name, row.id))}" if row.known else ""


def _contradictions(matrix: Matrix) -> Iterator[str]:
    if not matrix.contradictions:
        return
    yield from (f"## {words.CONTRADICTIONS}", "", words.CONTRADICTIONS_LEAD, "")
    yield _row(words.CONTRADICTION_COLUMNS)
    yield _row(":---" for _ in words.CONTRADICTION_COLUMNS)
    titles = {column.name: column.title for column in matrix.columns}
    for found in matrix.contradictions:
        about = f"{found.kind} {found.name}"
        texts = (titles[found.connector], about, found.declared, found.observed)
        yield _row([*(plain(text) for text in texts), link(found.source)])


def _runs(matrix: Matrix) -> Iterator[str]:
    yield _row(provenance.RUN_COLUMNS)
    yield _row(":---" for _ in provenance.RUN_COLUMNS)
    for run in matrix.runs[::-1]:
        yield _row(plain(text) for text in provenance.run_row(run))
    yield ""
    yield provenance.TIMING


def _problems(matrix: Matrix) -> Iterator[str]:
    told = [(run, problem) for run in matrix.runs[::-1] for problem in run.problems]
    if told:
        yield ""
        yield "Problems that these runs met:"
        yield ""
    for run, problem in told:
        yield f"- {code(run.run_id)}: {plain(problem)}"


def _connectors(matrix: Matrix) -> Iterator[str]:
    yield _row(("Connector", "Class", "Newest run", "Engine", "Links"))
    yield _row(":---" for _ in range(5))
    for column in matrix.columns:
        run = matrix.runs[column.run]
        names = [plain(column.title), cell_code(column.connector_class), cell_code(run.run_id)]
        build = plain(provenance.engine(run.engine))
        yield _row([*names, build, " ".join(link(url) for url in column.links)])
