"""Progress and summary for a person: plain lines, coloured on a terminal."""

from __future__ import annotations

import time

from rich.console import Console as RichConsole
from rich.markup import escape

from conformance.assumptions.trial import in_brief
from conformance.controls import words as control_words
from conformance.evidence import Outcome, Rung
from conformance.expectations_outcome import flaky, known
from conformance.options import RunOptions
from conformance.registry import PlannedCell
from conformance.report import Cell, Report, ServerStart
from conformance.report_parts import AssumptionResult
from conformance.summary import STYLE, failures, table
from conformance.timings import Timings
from conformance.verdict import ExitCode, Verdict

_SAID_ONCE = {Verdict.NOT_RUN, Verdict.UNSUPPORTED, Verdict.ERROR}
MARK = {
    Outcome.HELD: "✓",
    Outcome.BROKEN: "✗",
    Outcome.RECOMPUTED: "↻",
    Outcome.BLIND: "?",
    Outcome.NOT_APPLICABLE: "-",
}
MEANING_OF_CODE = {
    ExitCode.CONFORMANT: "conformant",
    ExitCode.NOT_CONFORMANT: "not conformant",
    ExitCode.USAGE: "bad usage",
    ExitCode.HARNESS: "harness error",
    ExitCode.NOTHING_RAN: "nothing ran",
    ExitCode.INTERRUPTED: "interrupted",
}


class Console:
    """Says what happens while a run goes on. ``mode``: ``lines``, ``quiet``, or empty for off."""

    def __init__(self, mode: str, cells: list[PlannedCell], options: RunOptions) -> None:
        self._quiet = mode != "lines"
        self._summary = mode != ""
        self._out = RichConsole(highlight=False, soft_wrap=True)
        self._began = time.monotonic()
        self._done = 0
        self._cells = cells
        self._timings = Timings()
        self._last: tuple[str, Verdict, str] | None = None
        self._over = False
        self._say(
            f"{len(cells)} cells on {len({c.deployment for c in cells})} deployments, about "
            f"{self._timings.run_s(cells) / 60:.0f} min; results in {options.report}"
        )

    def note(self, text: str) -> None:
        """Something takes a while."""
        self._say(f"[dim]{escape(text)}[/dim]")

    def server(self, start: ServerStart) -> None:
        """A server is up, or could not be started."""
        if start.problem:
            self._say(f"[red]{escape(start.deployment)}: {escape(start.problem)}[/red]")
        elif start.startup_s is not None:
            self._say(
                f"[dim]{escape(start.deployment)}: {start.role} ready after "
                f"{start.startup_s:.0f} s (block size {start.block_size})[/dim]"
            )

    def assumptions(self, results: list[AssumptionResult], version: str) -> None:
        """Whether vLLM does what is taken for granted of it."""
        line, holds = in_brief(results, version)
        self._say(f"[{'dim' if holds else 'bold red'}]{escape(line)}[/]")
        self._over = not holds

    def cell(self, connector: str, cell: Cell) -> None:
        """A cell is done."""
        self._done += 1
        untried = self._over and cell.verdict is Verdict.NOT_RUN
        if not untried:
            self._timings.learn(cell)
        if self._is_again(connector, cell) or untried:
            return
        style = STYLE[cell.verdict]
        clock = _minutes(time.monotonic() - self._began)
        self._say(
            f"[dim]{self._done:>3}/{len(self._cells)} {clock}[/dim] {escape(connector)} "
            f"{escape(cell.check)} [{style}]{cell.verdict}[/{style}] "
            f"{_ladder(cell)} [dim]{cell.duration_s:.1f} s[/dim]"
        )
        if cell.verdict is not Verdict.PASS:
            self._say(f"      {escape(cell.message)}")
        if cell.expectation and cell.verdict is Verdict.XFAIL:
            self._say(f"      [dim]expected: {escape(cell.expectation.words)}[/dim]")

    def _is_again(self, connector: str, cell: Cell) -> bool:
        """Whether the same was said of the cell before: what keeps one cell keeps forty."""
        before, self._last = self._last, (connector, cell.verdict, cell.message)
        return cell.verdict in _SAID_ONCE and before == self._last

    def finish(self, report: Report, folder: object, code: ExitCode) -> None:
        """What a person wants to know at the end."""
        self._timings.learn_starts(report)
        self._timings.save()
        if not self._summary:
            return
        if report.connectors:
            self._out.print(table(report))
        for line in failures(report):
            self._out.print(line)
        for line in known(report.expectations):
            self._out.print(f"[blue]known[/blue]: {escape(line)}")
        for line in flaky(report.expectations):
            self._out.print(f"[blue]flaky[/blue]: {escape(line)}")
        for control in report.controls:
            self._out.print(escape(control_words(control)))
        for problem in report.problems:
            self._out.print(f"[bold red]{escape(problem)}[/bold red]")
        for found in report.contradictions:
            self._out.print(
                f"[yellow]contradiction[/yellow]: {found.connector} {found.kind} {found.name}: "
                f"declared {escape(found.declared)}, but {escape(found.observed)}"
            )
        t = report.timing
        share = 100 * t.harness_s / t.wall_s if t.wall_s else 0.0
        self._out.print(
            f"wall {t.wall_s:.0f} s = servers {t.startup_s:.0f} s ({t.server_starts} starts), "
            f"requests {t.request_s:.0f} s, harness {t.harness_s:.0f} s ({share:.0f} %)"
        )
        self._out.print(f"report: {folder}  exit {int(code)}: {MEANING_OF_CODE[code]}")

    def _say(self, line: str) -> None:
        if not self._quiet:
            self._out.print(line)


def _ladder(cell: Cell) -> str:
    """One letter per step of the ladder, with the worst outcome over all proofs."""
    marks = []
    order = list(Outcome)
    for rung in Rung:
        seen = [s.outcome for p in cell.evidence.proofs for s in p.steps if s.name is rung]
        if seen:
            bad = [o for o in seen if o not in (Outcome.HELD, Outcome.NOT_APPLICABLE)]
            held = Outcome.HELD if Outcome.HELD in seen else Outcome.NOT_APPLICABLE
            marks.append(f"{rung[:3]}{MARK[max(bad, key=order.index) if bad else held]}")
    return " ".join(marks)


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"
