"""The matrix as a page of Markdown, to be read where it is rendered: on GitHub."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from matrix import md_known, md_reasons, md_trust, provenance, words
from matrix.causes import Cause, loud
from matrix.md_table import PROOF, Table, legend, one_line_each, shims
from matrix.mdtext import cell_code, code, link, plain, row, rule
from matrix.model import Matrix


def render_markdown(matrix: Matrix) -> str:
    """The whole page; the same matrix always gives the same text."""
    causes = loud(matrix)
    sections = (
        [f"# {words.TITLE}", "", *_headline(matrix)],
        [*md_trust.controls(matrix)],
        ["## Connectors × features", "", *_features(matrix, causes)],
        [*md_reasons.broken(causes)],
        [*md_reasons.known_failures(causes)],
        [*md_known.flaky(matrix)],
        [*md_reasons.untried(matrix)],
        [*md_reasons.older(matrix)],
        [*md_trust.replaced(matrix)],
        [*md_trust.contradictions(matrix)],
        [*md_trust.registry(matrix)],
        [*md_known.files(matrix)],
        ["## What a green cell stands on", "", words.LADDER, "", *_ladder()],
        ["## Runs", "", *_runs(matrix), *_problems(matrix)],
        ["## Connectors", "", *_connectors(matrix)],
    )
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _headline(matrix: Matrix) -> Iterator[str]:
    for name, text in provenance.headline(matrix):
        yield f"- **{name}:** {plain(text)}"


def _features(matrix: Matrix, causes: Sequence[Cause]) -> Iterator[str]:
    table = list(Table(matrix, causes).lines())
    if table:
        yield from (*table, "")
    if table and table[0].startswith("| Connector"):
        yield from (PROOF, "")
    yield from legend(matrix)
    yield from shims(matrix)
    yield from one_line_each(matrix.grouped())


def _ladder() -> Iterator[str]:
    for number, (rung, meaning) in enumerate(words.RUNG_MEANING.items(), start=1):
        yield f"{number}. **{rung.value}**: {meaning}"


def _runs(matrix: Matrix) -> Iterator[str]:
    yield row(provenance.RUN_COLUMNS)
    yield rule(len(provenance.RUN_COLUMNS))
    for run in matrix.runs[::-1]:
        yield row(plain(text) for text in provenance.run_row(run))
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
    yield row(("Connector", "Class", "Newest run", "Engine", "Links"))
    yield rule(5)
    for column in matrix.columns:
        run = matrix.runs[column.run]
        names = [plain(column.title), cell_code(column.connector_class), cell_code(run.run_id)]
        build = plain(provenance.engine(run.engine))
        yield row([*names, build, " ".join(link(url) for url in column.links)])
