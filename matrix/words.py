"""The words that the Markdown and the page share, so that they cannot disagree."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from conformance.evidence import Rung
from conformance.report import Cell
from conformance.verdict import MEANING, Verdict
from matrix.model import Column, Matrix, MatrixCell
from matrix.parts import Reason, Standing

TITLE = "KV connector conformance matrix"
LEAD = (
    "Real prefill and decode servers, one pair per connector. A cell is green only if the run "
    "holds evidence that the KV moved, that decode used it, and that the answer is the one a "
    "single server gives. A cell that nobody ran is never green, and never red."
)
FOOT = "Drawn from report files alone: anything that is not in them was not seen."
SYMBOL: dict[Verdict, str] = {
    Verdict.PASS: "✅",
    Verdict.FAIL: "❌",
    Verdict.DEGRADED: "🟠",
    Verdict.UNSUPPORTED: "➖",
    Verdict.NOT_RUN: "❔",
    Verdict.ERROR: "⚠️",
    Verdict.XFAIL: "🟣",
    Verdict.XPASS: "🔵",
}
STANDING: dict[Standing, str] = {
    Standing.RAN: "Ran here",
    Standing.SHIM: "Ran here through a shim",
    Standing.NO_TRANSFER: "Starts, but fails the first transfer",
    Standing.REFUSED: "Does not start here: the engine's words",
    Standing.NOT_TRIED: "Could not be judged here: what is missing",
}
SHIM = "‡"
SHIM_MEANING = "through a shim: the connector does not run on this platform as shipped"
NONE_PLANNED = "–"
NONE_PLANNED_MEANING = "no check of this was planned for the connector"
RUNG_MEANING: dict[Rung, str] = {
    Rung.ACCOUNTING: "the decode server's own counters say that the prompt's tokens came from "
    "outside, as many as the connector promises",
    Rung.MOVEMENT: "the connector's own byte or operation counters moved, on the right side",
    Rung.CAUSALITY: "the answer changes when the transferred KV is another prompt's, or damaged",
    Rung.PARITY: "token ids and log-probabilities equal those of one server without a connector",
    Rung.CONTROL: "without the handoff, the same decode server computes the whole prompt itself",
}
LADDER = (
    "Each step catches what the one below cannot. The matrix says how far up the weakest pass "
    "got. A step that a connector has nothing to show for is passed over, with the reason. "
    "A check of one answer, such as an error body, has no ladder: its pass is marked as observed."
)
COUNTS = "Counts are checks passed, of all that were planned."
NOBODY = "In no report: nobody ran it, which is neither good nor bad news"


def label(verdict: Verdict) -> str:
    """A verdict as a reader says it."""
    return verdict.value.replace("_", " ")


def legend(matrix: Matrix) -> list[tuple[Verdict, str]]:
    """Every verdict that occurs, with its meaning, in the order of the enum."""
    seen = {verdict for column in matrix.columns for verdict in column.tally}
    absent = {Verdict.NOT_RUN for cell in matrix.cells if cell.absence == "not_asked"}
    return [(verdict, MEANING[verdict]) for verdict in Verdict if verdict in seen | absent]


def reason(cell: Cell) -> Reason:
    """Why a check did not pass, with what the expectations file says of it."""
    said = cell.message or "no message was recorded"
    expected = f" (expected: {cell.expectation.words})" if cell.expectation else ""
    return Reason(cell.verdict, said + expected)


def counts(cell: MatrixCell | Column) -> str:
    """Such as ``9/10``; ``not run`` where no report has a check."""
    return f"{cell.passed}/{cell.total}" if cell.total else label(Verdict.NOT_RUN)


def rest(cell: MatrixCell) -> dict[Verdict, int]:
    """The checks that the symbol and the count leave out, by verdict."""
    return {v: n for v, n in cell.tally.items() if v not in (Verdict.PASS, cell.verdict)}


def others(cell: MatrixCell) -> str:
    """What the symbol and the count leave out, such as ``1 not run``."""
    return ", ".join(f"{n} {label(v)}" for v, n in rest(cell).items())


def reach(cell: MatrixCell) -> str:
    """How far up the ladder the weakest pass got, in a word; empty without a pass."""
    if cell.reached:
        return cell.reached.value
    if not cell.passed:
        return ""
    return "observed" if cell.without_ladder == cell.passed else "no step held"


def reach_in_full(cell: MatrixCell) -> str:
    """The same as a sentence."""
    parts = []
    if cell.reached:
        height = list(Rung).index(cell.reached) + 1
        parts.append(f"weakest pass reached {cell.reached.value} ({height} of {len(Rung)})")
    elif cell.passed > cell.without_ladder:
        parts.append("weakest pass held no step from the bottom of the ladder up")
    if cell.without_ladder:
        parts.append(f"passes on recorded observations alone: {cell.without_ladder}")
    return "; ".join(parts)


def run_line(connector: str, *features: str) -> str:
    """The command that runs some features of one connector."""
    asked = "".join(f" --feature {shlex.quote(feature)}" for feature in features)
    return f"kv-conformance run --connector {shlex.quote(connector)}{asked}"


def checks(count: int) -> str:
    """Such as ``1 check`` or ``42 checks``."""
    return f"{count} check" + ("" if count == 1 else "s")


def listed(names: Iterable[str]) -> str:
    """Names once each, in their order."""
    return ", ".join(dict.fromkeys(names))
