"""The words that the Markdown and the page share, so that they cannot disagree."""

from __future__ import annotations

import shlex

from conformance.evidence import Rung
from conformance.report import Cell
from conformance.verdict import MEANING, Verdict
from matrix.model import MatrixCell, Reason

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
RUNG_MEANING: dict[Rung, str] = {
    Rung.ACCOUNTING: "the decode server's own counters say that the prompt's tokens came from "
    "outside, as many as the connector promises",
    Rung.MOVEMENT: "the connector's own byte or operation counters moved, on the right side",
    Rung.CAUSALITY: "the answer changes when the transferred KV is another prompt's, or damaged",
    Rung.PARITY: "token ids and log-probabilities equal those of one server without a connector",
    Rung.CONTROL: "without the handoff, the same decode server computes the whole prompt itself",
}
LADDER = (
    "Each step catches what the one below cannot. Beside the count stands how far up the weakest "
    "pass got. A step that a connector has nothing to show for is passed over, with the reason. "
    "A check of one answer, such as an error body, has no ladder: its pass is marked as observed."
)
CONTRADICTIONS = "Said, and not so"
CONTRADICTIONS_LEAD = (
    "What a profile or a page it quotes says of a connector, against what its newest run saw or "
    "its class says of itself. What nobody declared cannot be contradicted."
)
CONTRADICTION_COLUMNS = ("Connector", "About", "Declared", "Observed", "Declared in")
COUNTS = "Counts are checks passed, of all that were planned."
NOBODY = "In no report: nobody ran it, which is neither good nor bad news"


def label(verdict: Verdict) -> str:
    """A verdict as a reader says it."""
    return verdict.value.replace("_", " ")


def legend() -> list[tuple[Verdict, str]]:
    """Every verdict with its meaning, in the order of the enum."""
    return [(verdict, MEANING[verdict]) for verdict in Verdict]


def reason(cell: Cell) -> Reason:
    """Why a check did not pass, with what the expectations file says of it."""
    said = cell.message or "no message was recorded"
    expected = f" (expected: {cell.expectation})" if cell.expectation else ""
    return Reason(cell.verdict, said + expected)


def counts(cell: MatrixCell) -> str:
    """Such as ``9/10``; ``not run`` where no report has a check."""
    return f"{cell.passed}/{cell.total}" if cell.total else label(Verdict.NOT_RUN)


def others(cell: MatrixCell) -> str:
    """What the symbol and the count leave out, such as ``1 not run``."""
    shown = {Verdict.PASS, cell.verdict}
    return ", ".join(f"{n} {label(v)}" for v, n in cell.tally.items() if v not in shown)


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


def run_line(connector: str, feature: str) -> str:
    """The command that runs one feature of one connector."""
    names = shlex.quote(connector), shlex.quote(feature)
    return "kv-conformance run --connector {} --feature {}".format(*names)
