"""The kill matrix as a page in Markdown."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from conformance.mutants.kill_matrix import KillMatrix, Mutant
from conformance.mutants.trial import Wanted
from conformance.registry import all_checks

PAGE = "kill-matrix.md"
_WIDTH = 160


def write(matrix: KillMatrix, folder: Path) -> Path:
    """Write the page beside the report."""
    page = folder / PAGE
    page.write_text(page_of(matrix), encoding="utf-8")
    return page


def page_of(matrix: KillMatrix) -> str:
    """The page's text."""
    environment = Environment(
        loader=PackageLoader("conformance", "mutants"),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters["cell"] = _cell
    checks = [check.id for check in all_checks()]
    return environment.get_template("kill_matrix.md.j2").render(
        matrix=matrix,
        killed=[mutant for mutant in matrix.mutants if is_killed(matrix, mutant)],
        named=lambda mutant, wanted: _named(matrix, mutant, Wanted(wanted)),
        checks=checks,
        idle=matrix.idle(checks),
    )


def is_killed(matrix: KillMatrix, mutant: Mutant) -> bool:
    """Whether all that had to see it did, and nothing else went red."""
    trials = matrix.of(mutant)
    tried = [trial for trial in trials if trial.wanted is Wanted.RED]
    return bool(tried) and not any(trial.survived or trial.strayed for trial in trials)


def _named(matrix: KillMatrix, mutant: Mutant, wanted: Wanted) -> str:
    """Its cells of one kind; those that came out otherwise are struck through."""
    return ", ".join(
        f"~~`{t.check}`~~" if t.survived or t.strayed else f"`{t.check}`"
        for t in matrix.of(mutant)
        if t.wanted is wanted
    )


def _cell(text: str) -> str:
    """A message as it fits into a cell of a table."""
    line = " ".join(text.split()).replace("|", "\\|")
    return line if len(line) <= _WIDTH else line[:_WIDTH] + "…"
