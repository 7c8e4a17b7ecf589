"""Numbered notes under the table: why a cell is what it is, each reason written once."""

from __future__ import annotations

from collections.abc import Iterator

from matrix import provenance, words
from matrix.mdtext import plain
from matrix.model import Matrix, MatrixCell

MOST_PER_CELL = 4  # the section below the table has them all


class Footnotes:
    """Numbers notes in the order in which cells ask for them."""

    def __init__(self, matrix: Matrix) -> None:
        self._matrix = matrix
        self._numbers: dict[str, int] = {}

    def marks(self, cell: MatrixCell) -> str:
        """The superscript for a cell, or nothing where there is nothing to add."""
        reasons = [f"{words.SYMBOL[r.verdict]} {plain(r.text)}" for r in cell.reasons]
        shown = list(dict.fromkeys(reasons))[:MOST_PER_CELL]
        older = [plain(provenance.older(run)) for run in self._matrix.older_runs(cell)]
        numbers = [self._number(text) for text in shown + older]
        more = ", …" if len(set(reasons)) > len(shown) else ""
        marks = ", ".join(str(number) for number in numbers)
        return f" <sup>{marks}{more}</sup>" if numbers else ""

    def lines(self) -> Iterator[str]:
        """The notes as a numbered list; nothing where no cell asked for one."""
        if self._numbers:
            yield from ("**Notes.**", "")
        yield from (f"{number}. {text}" for text, number in self._numbers.items())

    def _number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers) + 1)
