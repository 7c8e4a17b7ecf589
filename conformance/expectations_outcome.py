"""What became of each entry of an expectations file, and what that does to a run."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.report import Cell, Report
from conformance.report_parts import EntryResult, EntryState, ExpectationsResult
from conformance.verdict import FAILURES, ExitCode, Verdict

RED = (EntryState.STALE, EntryState.UNMATCHED, EntryState.EXPIRED)
_NAMED = 3


def tally(report: Report) -> None:
    """Bring the entries of a report up to what its cells say."""
    for entry in report.expectations.entries if report.expectations else ():
        if entry.cells:
            _count(entry, {n: judged(cell) for n in entry.cells if (cell := _cell(report, n))})


def _cell(report: Report, name: str) -> Cell | None:
    connector, _, check = name.partition("/")
    column = report.connector(connector)
    return column.cell(check) if column else None


def _count(entry: EntryResult, seen: Mapping[str, Verdict]) -> None:
    """``seen``: by the name of a cell, what it was judged."""
    entry.failed = sum(verdict is entry.verdict for verdict in seen.values())
    entry.passed = sum(verdict is Verdict.PASS for verdict in seen.values())
    over = _no_longer(entry, seen)
    if over:
        told = [f"{name} is {seen[name]}" for name in over]
        entry.state, entry.note = EntryState.STALE, _listed(told)
    elif any(verdict in FAILURES and verdict is not entry.verdict for verdict in seen.values()):
        entry.state = EntryState.OTHER
    elif entry.failed or entry.passed:
        entry.state = EntryState.MET


def judged(cell: Cell) -> Verdict:
    """What a cell was judged, whatever is expected of it."""
    return cell.expectation.seen if cell.expectation else cell.verdict


def _no_longer(entry: EntryResult, seen: Mapping[str, Verdict]) -> list[str]:
    """The cells that speak against an entry: one that is refused in clear words fails no more."""
    ends = (Verdict.UNSUPPORTED,) if entry.flaky else (Verdict.PASS, Verdict.UNSUPPORTED)
    return [name for name, verdict in seen.items() if verdict in ends]


def words(found: ExpectationsResult | None) -> list[str]:
    """What has to be done about a file, one line for each entry that makes a run red."""
    if found is None:
        return []
    return [f"{found.file}:{e.line}: {_told(e)}" for e in found.entries if e.state in RED]


def _told(entry: EntryResult) -> str:
    about = f"{entry.connector} {entry.check}"
    if entry.state is EntryState.STALE:
        fix = "narrow the entry to what still fails" if entry.failed else "remove the entry"
        return f"{about}: expected {entry.verdict}, but {entry.note}: {fix}"
    if entry.state is EntryState.UNMATCHED:
        return f"{about}: matches no cell, {entry.note}: fix the spelling or remove the entry"
    return f"{about}: expired, {entry.note}: see whether it still fails, then renew or remove it"


def known(found: ExpectationsResult | None) -> list[str]:
    """One line for each entry that was met, but for those that come and go."""
    entries = found.entries if found else ()
    return [
        f"{e.connector} {e.check}: {e.verdict} as expected in {_cells(e.failed)}: {_why(e)}"
        for e in entries
        if e.failed and not e.flaky
    ]


def flaky(found: ExpectationsResult | None) -> list[str]:
    """One line for each entry that comes and goes, with how often it failed."""
    entries = found.entries if found else ()
    return [
        f"{e.connector} {e.check}: {e.verdict} in {e.failed} of {e.failed + e.passed}: {_why(e)}"
        for e in entries
        if e.flaky and (e.failed or e.passed)
    ]


def expected(code: ExitCode, found: ExpectationsResult | None) -> ExitCode:
    """The exit code of a run that ended with ``code``, once its file has had its say."""
    if not words(found) or code is ExitCode.INTERRUPTED:
        return code
    return ExitCode.NOT_CONFORMANT


def _why(entry: EntryResult) -> str:
    return f"{entry.reason} ({entry.link})" if entry.link else entry.reason


def _cells(count: int) -> str:
    return f"{count} cell" + ("" if count == 1 else "s")


def _listed(told: list[str]) -> str:
    rest = len(told) - _NAMED
    return ", ".join(told[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")
