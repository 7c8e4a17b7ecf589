"""What speaks for or against the whole, in Markdown: a section only where it says something."""

from __future__ import annotations

from collections.abc import Iterator

from matrix import trust_words, words
from matrix.mdtext import code, link, plain, row, rule
from matrix.model import Matrix


def controls(matrix: Matrix) -> Iterator[str]:
    """Whether the runs found out the connectors that fake their transfers."""
    told = trust_words.controls(matrix)
    if told:
        yield from (f"## {trust_words.CONTROLS}", "", trust_words.CONTROLS_LEAD, "")
    for verdict, run, line in told:
        yield f"- {words.SYMBOL[verdict]} {code(run)}: {plain(line)}"


def contradictions(matrix: Matrix) -> Iterator[str]:
    """What is declared against what was seen."""
    if not matrix.contradictions:
        return
    yield from (f"## {trust_words.CONTRADICTIONS}", "", trust_words.CONTRADICTIONS_LEAD, "")
    yield row(trust_words.CONTRADICTION_COLUMNS)
    yield rule(len(trust_words.CONTRADICTION_COLUMNS))
    titles = {column.name: column.title for column in matrix.columns}
    for found in matrix.contradictions:
        about = f"{found.kind} {found.name}"
        texts = (titles[found.connector], about, found.declared, found.observed)
        yield row([*(plain(text) for text in texts), link(found.source)])


def registry(matrix: Matrix) -> Iterator[str]:
    """The engine's connectors that nothing tests, and those that are exempt."""
    found = trust_words.registries(matrix)
    if found:
        yield from (f"## {trust_words.REGISTRY}", "")
    for run, gate in found:
        yield f"- {code(run.run_id)}: {plain(trust_words.registry_line(gate))}"
        for problem in trust_words.registry_problems(gate):
            yield f"    - ❌ {plain(problem)}"
        for name, why in gate.exempt.items():
            yield f"    - {plain(name)} is exempt: {plain(why.reason)} {link(why.link)}"


def replaced(matrix: Matrix) -> Iterator[str]:
    """Results that a newer run replaced with another verdict."""
    found = trust_words.replaced(matrix)
    if not found:
        return
    yield from (f"## {trust_words.REPLACED}", "", trust_words.REPLACED_LEAD, "")
    yield row(trust_words.REPLACED_COLUMNS)
    yield rule(len(trust_words.REPLACED_COLUMNS))
    for column, shown, old in found:
        now = trust_words.in_run(matrix, shown.cell.verdict, shown.run)
        then = trust_words.in_run(matrix, old.verdict, old.run, old.message)
        yield row(plain(text) for text in (column.title, shown.cell.check, now, then))
