"""The matrix proper in Markdown: connectors against features, and one line for the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from conformance.evidence import Rung
from conformance.verdict import Verdict
from matrix import words
from matrix.causes import Cause
from matrix.mdtext import plain, row, rule
from matrix.model import Column, Matrix, MatrixCell
from matrix.parts import Standing

# With more connectors than this, connectors are rows: a page of text grows downwards.
WIDEST = 5
MOST_NOTES = 4  # of one cell; the reasons below name every check
_OLDER = "<sup>old</sup>"


class Table:
    """The cells of a matrix as text; ``causes`` are what the numbers in them stand for."""

    def __init__(self, matrix: Matrix, causes: Iterable[Cause]) -> None:
        self._matrix = matrix
        self._notes: dict[tuple[str, str], list[int]] = {}
        for cause in causes:
            for told in cause.told:
                place = self._notes.setdefault((told.column.name, told.cell.feature), [])
                place.extend({cause.number} - set(place))
        groups = matrix.grouped()
        self._shown = {s: columns for s, columns in groups.items() if s.has_row}

    def lines(self) -> Iterator[str]:
        """The table of connectors whose cells differ; nothing where there are none."""
        columns = [column for group in self._shown.values() for column in group]
        if not columns:
            return
        yield from self._upright(columns) if len(columns) <= WIDEST else self._lying()

    def _upright(self, columns: list[Column]) -> Iterator[str]:
        yield row(["Feature", *(plain(column.title) for column in columns)])
        yield row([":---", *(":---:" for _ in columns)])
        for feature in self._matrix.rows:
            cells = (self._matrix.cell(column.name, feature.id) for column in columns)
            yield row([f"**{plain(feature.title)}**", *(self._in_words(cell) for cell in cells)])

    def _lying(self) -> Iterator[str]:
        yield row(["Connector", "Proof", *(plain(feature.title) for feature in self._matrix.rows)])
        yield row([":---", ":---", *(":---:" for _ in self._matrix.rows)])
        for standing, columns in self._shown.items():
            if len(self._shown) > 1:
                yield row([f"**{words.STANDING[standing]}**", *("" for _ in self._matrix.rows), ""])
            for column in columns:
                cells = [self._matrix.cell(column.name, f.id) for f in self._matrix.rows]
                proof = column.reached.value if column.reached else ""
                yield row([plain(column.title), proof, *(self._in_signs(cell) for cell in cells)])

    def _in_words(self, cell: MatrixCell) -> str:
        return cell_text(cell) + self._marks(cell)

    def _in_signs(self, cell: MatrixCell) -> str:
        if cell.absence:
            return _absent(cell)
        rest = "".join(f" {words.SYMBOL[v]}{n}" for v, n in words.rest(cell).items())
        signs = f"{words.SYMBOL[cell.verdict]} {words.counts(cell)}{rest}"
        return signs + self._marks(cell)

    def _marks(self, cell: MatrixCell) -> str:
        numbers = self._notes.get((cell.connector, cell.feature), [])
        shown = ", ".join(str(number) for number in numbers[:MOST_NOTES])
        more = ", …" if len(numbers) > MOST_NOTES else ""
        notes = f"<sup>{shown}{more}</sup>" if numbers else ""
        older = _OLDER if self._matrix.older_runs(cell) else ""
        shim = words.SHIM if cell.shims else ""
        return "".join(f" {mark}" for mark in (shim, notes, older) if mark)


def cell_text(cell: MatrixCell) -> str:
    """A cell in words, such as ``✅ 1/2, 1 not run · control``."""
    if cell.absence:
        return _absent(cell)
    reach = words.reach(cell) if cell.verdict is Verdict.PASS else ""
    texts = [words.counts(cell), words.others(cell)]
    counted = ", ".join(text for text in texts if text)
    return f"{words.SYMBOL[cell.verdict]} {counted}" + (f" · {reach}" if reach else "")


def _absent(cell: MatrixCell) -> str:
    return words.NONE_PLANNED if cell.absence == "none_planned" else words.SYMBOL[cell.verdict]


def legend(matrix: Matrix) -> Iterator[str]:
    """What the signs of this table mean, in one paragraph."""
    signs = [
        f"{words.SYMBOL[v]} {words.label(v)}: {meaning}" for v, meaning in words.legend(matrix)
    ]
    if any(cell.absence == "none_planned" for cell in matrix.cells):
        signs.append(f"{words.NONE_PLANNED} {words.NONE_PLANNED_MEANING}")
    if any(cell.shims for cell in matrix.cells):
        signs.append(f"{words.SHIM} {words.SHIM_MEANING}")
    if any(matrix.older_runs(cell) for cell in matrix.cells):
        signs.append(f"{_OLDER} from an older run")
    yield f"{words.COUNTS} " + " · ".join(signs) + "."


def one_line_each(groups: Mapping[Standing, tuple[Column, ...]]) -> Iterator[str]:
    """The connectors without a row: each with the words that explain it, once."""
    for standing, columns in groups.items():
        if standing.has_row:
            continue
        yield from ("", f"### {words.STANDING[standing]}", "")
        yield row(["Connector", "", "Why", "Checks"])
        yield rule(4)
        for column in columns:
            verdict = column.reason.verdict if column.reason else column.verdict
            why = plain(column.reason.text) if column.reason else ""
            yield row([plain(column.title), words.SYMBOL[verdict], why, str(column.total)])


def shims(matrix: Matrix) -> Iterator[str]:
    """Each shim once, with the connectors that ran through it."""
    found: dict[str, list[str]] = {}
    for column in matrix.columns:
        for shim in column.shims:
            found.setdefault(shim, []).append(column.title)
    if found:
        yield from ("", f"{words.SHIM} What these ran through:", "")
    for shim, titles in found.items():
        yield f"- {plain(words.listed(titles))}: {plain(shim)}"


PROOF = f"Proof: how far up the ladder ({', '.join(Rung)}) the weakest pass of a connector got."
