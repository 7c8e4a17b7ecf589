"""A probe's result for a person: a table on a terminal, plain lines elsewhere."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from conformance.conclusion import Conclusion
from conformance.console import MARK
from conformance.evidence import Outcome, Step
from conformance.probe_result import ProbeResult
from conformance.serving.attached import ServerFacts

_STYLE = {
    Conclusion.TRANSFERS: "bold green",
    Conclusion.DOES_NOT: "bold red",
    Conclusion.UNKNOWN: "bold yellow",
}
_COLOUR = {Outcome.HELD: "green", Outcome.NOT_APPLICABLE: "dim"}


def show(found: ProbeResult, out: Console | None = None) -> None:
    """Print servers, ladder, notes and the conclusion."""
    out = out or Console(highlight=False, soft_wrap=True)
    for name, facts in (("prefill", found.prefill), ("decode ", found.decode)):
        out.print(f"{name}  {escape(_about(facts))}")
    out.print(f"handoff  {escape(found.handoff)} ({escape(found.handoff_why)})")
    if out.is_terminal and found.steps:
        out.print(_table(found.steps))
    else:
        for step in found.steps:
            out.print(f"{MARK[step.outcome]} {step.name:<10} {escape(step.summary)}")
    for note in found.notes:
        out.print(f"note: {escape(note)}")
    style = _STYLE[found.conclusion]
    out.print(f"[{style}]{found.conclusion}[/{style}]: {escape(found.sentence)}")
    if found.fix:
        out.print(f"fix: {escape(found.fix)}")


def _table(steps: list[Step]) -> Table:
    table = Table()
    for column in ("step", "", "what was seen"):
        table.add_column(column, overflow="fold")
    for step in steps:
        colour = _COLOUR.get(step.outcome, "red")
        mark = f"[{colour}]{MARK[step.outcome]} {step.outcome.replace('_', ' ')}[/{colour}]"
        table.add_row(step.name, mark, escape(step.summary))
    return table


def _about(facts: ServerFacts) -> str:
    parts = [
        facts.url,
        ", ".join(facts.models[:1]),
        _build(facts),
    ]
    if facts.block_size:
        parts.append(f"block size {facts.block_size}")
    return "  ".join(filter(None, parts))


def _build(facts: ServerFacts) -> str:
    return f"vLLM {facts.version}" if facts.version else "version not told"
