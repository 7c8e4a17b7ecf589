"""What is known to fail: the words of expectations files, and how often flaky checks fail."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from conformance.expectations_outcome import words as expectation_words
from conformance.report import Report
from conformance.report_parts import ExpectationsResult, Expected
from conformance.verdict import Verdict
from matrix.model import Matrix
from matrix.parts import Flaky, Run

KNOWN = "Known failures"
KNOWN_LEAD = "The expectations file names these, with the reason. A run is not red for them."
FLAKY = "Known to come and go"
FLAKY_LEAD = "Flaky by the expectations file, so either outcome is let through; never an error."
FLAKY_COLUMNS = ("Connector", "Check", "Failed", "Why")
STANDING = "Expectations"


def flaky(reports: Sequence[Report]) -> tuple[Flaky, ...]:
    """The flaky checks of reports that are oldest first, by connector and check."""
    seen: dict[tuple[str, str], list[Expected]] = defaultdict(list)
    for connector, check, expected in _expected(reports):
        if expected.flaky and expected.seen in (Verdict.PASS, expected.verdict):
            seen[connector, check].append(expected)
    return tuple(
        Flaky(
            connector=connector,
            check=check,
            failed=sum(one.seen is one.verdict for one in found),
            tried=len(found),
            reason=found[-1].words,
        )
        for (connector, check), found in sorted(seen.items())
    )


def _expected(reports: Sequence[Report]) -> Iterator[tuple[str, str, Expected]]:
    for report in reports:
        for column in report.connectors:
            for cell in column.cells:
                if cell.expectation:
                    yield column.name, cell.check, cell.expectation


def flaky_rows(matrix: Matrix) -> list[tuple[str, str, str, str]]:
    """The flaky checks under :data:`FLAKY_COLUMNS`."""
    titles = {column.name: column.title for column in matrix.columns}
    return [
        (titles[f.connector], f.check, f"in {f.failed} of {f.tried} runs", f.reason)
        for f in matrix.flaky
    ]


def files(matrix: Matrix) -> list[tuple[Run, ExpectationsResult]]:
    """The runs that were given a file, newest first."""
    return [(run, run.expectations) for run in reversed(matrix.runs) if run.expectations]


def file_line(found: ExpectationsResult) -> str:
    """What became of a file's entries, such as ``known.yaml, 7 entries: 6 met, 1 stale``."""
    states = [entry.state for entry in found.entries]
    counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
    noun = "entry" if len(states) == 1 else "entries"
    return f"{found.file}, {len(states)} {noun}" + (f": {counts}" if counts else "")


def file_problems(found: ExpectationsResult) -> list[str]:
    """What has to be done about it, one line for each entry that made the run red."""
    return expectation_words(found)
