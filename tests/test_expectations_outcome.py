"""What became of each entry, what has to be done about it, and the exit code of the run."""

from __future__ import annotations

import pytest
from expectation_samples import PLACES, TODAY, entry, ruled
from test_matrix_samples import cell, column, one
from test_matrix_samples import report as reported

from conformance.expectations import Entry
from conformance.expectations_outcome import expected, flaky, judged, known, tally, words
from conformance.report import Report
from conformance.report_parts import EntryResult, EntryState, ExpectationsResult
from conformance.verdict import ExitCode, Verdict

CHECKS = [place.cell for place in PLACES if place.connector == "nixl"]
PASS, FAIL, DEGRADED = Verdict.PASS, Verdict.FAIL, Verdict.DEGRADED


def after(seen: list[Verdict], *entries: Entry) -> Report:
    """A run whose cells were judged so."""
    ruling = ruled(*entries)
    cells = [cell(check, verdict) for check, verdict in zip(CHECKS, seen, strict=False)]
    for found in cells:
        ruling.settle("nixl", found)
    report = one(*cells, expectations=ruling.result)
    tally(report)
    return report


def result(report: Report) -> ExpectationsResult:
    assert report.expectations is not None
    return report.expectations


def only(seen: list[Verdict], given: Entry) -> EntryResult:
    [found] = result(after(seen, given)).entries
    return found


LENGTHS = entry(check="length/*")


@pytest.mark.parametrize(
    ("seen", "state", "counts", "note"),
    [
        ([FAIL, FAIL, FAIL], EntryState.MET, (3, 0), ""),
        ([FAIL, Verdict.NOT_RUN, Verdict.ERROR], EntryState.MET, (1, 0), ""),
        ([FAIL], EntryState.MET, (1, 0), ""),
        ([Verdict.NOT_RUN, Verdict.ERROR], EntryState.UNTRIED, (0, 0), ""),
        ([], EntryState.UNTRIED, (0, 0), ""),
        ([DEGRADED, FAIL], EntryState.OTHER, (1, 0), ""),
        ([FAIL, PASS], EntryState.STALE, (1, 1), "nixl/length/B is pass"),
        ([DEGRADED, PASS], EntryState.STALE, (0, 1), "nixl/length/B is pass"),
        (
            [PASS, Verdict.UNSUPPORTED, FAIL],
            EntryState.STALE,
            (1, 1),
            "nixl/length/1 is pass, nixl/length/B is unsupported",
        ),
    ],
)
def test_what_became_of_an_entry(
    seen: list[Verdict], state: EntryState, counts: tuple[int, int], note: str
) -> None:
    found = only(seen, LENGTHS)
    assert (found.state, found.note) == (state, note)
    assert (found.failed, found.passed) == counts


@pytest.mark.parametrize(
    ("seen", "state", "counts"),
    [
        ([PASS, PASS], EntryState.MET, (0, 2)),
        ([PASS, FAIL, PASS], EntryState.MET, (1, 2)),
        ([PASS, DEGRADED], EntryState.OTHER, (0, 1)),
        ([PASS, Verdict.UNSUPPORTED], EntryState.STALE, (0, 1)),
        ([Verdict.ERROR], EntryState.UNTRIED, (0, 0)),
    ],
)
def test_a_flaky_entry_is_not_stale_for_a_pass(
    seen: list[Verdict], state: EntryState, counts: tuple[int, int]
) -> None:
    found = only(seen, entry(check="length/*", flaky=True))
    assert (found.state, found.failed, found.passed) == (state, *counts)


def test_many_cells_that_no_longer_fail_are_counted() -> None:
    found = only([PASS] * 4, entry(check="*"))
    three = "nixl/length/1 is pass, nixl/length/B is pass, nixl/length/B+1 is pass"
    assert found.note == f"{three} and 1 more"
    assert only([PASS] * 3, entry(check="*")).note.endswith("length/B+1 is pass")


def test_a_cell_is_judged_whatever_is_expected() -> None:
    report = after([FAIL, FAIL], entry())
    column = report.connectors[0]
    assert [found.verdict for found in column.cells] == [Verdict.XFAIL, FAIL]
    assert [judged(found) for found in column.cells] == [FAIL, FAIL]


def test_an_entry_that_was_settled_before_anything_was_tried_stays_so() -> None:
    expired = entry(expires=TODAY.replace(year=2020))
    found = only([FAIL], expired)
    assert (found.state, found.failed) == (EntryState.EXPIRED, 0)


def test_cells_of_several_connectors_are_told_apart() -> None:
    ruling = ruled(entry("*", "length/1"))
    columns = [column(cell("length/1", FAIL)), column(cell("length/1", PASS), name="example")]
    for one_column in columns:
        ruling.settle(one_column.name, one_column.cells[0])
    done = reported(*columns, expectations=ruling.result)
    tally(done)
    [found] = result(done).entries
    assert (found.failed, found.passed, found.note) == (1, 1, "example/length/1 is pass")


def test_cells_of_a_connector_that_the_report_lacks_are_not_counted() -> None:
    report = after([FAIL], entry("*", "length/1"))
    [found] = result(report).entries
    assert found.cells == ["nixl/length/1", "example/length/1"]
    assert found.failed == 1


def test_a_report_without_a_file_has_nothing_to_tally() -> None:
    report = one(cell("length/1", FAIL))
    tally(report)
    assert report.expectations is None
    assert words(None) == known(None) == flaky(None) == []
    assert expected(ExitCode.CONFORMANT, None) is ExitCode.CONFORMANT


def test_what_has_to_be_done_is_told_with_the_line() -> None:
    report = after(
        [PASS, FAIL, PASS, PASS],
        entry(check="length/1"),
        entry(check="length/B*"),
        entry(check="lenght"),
        entry(check="transfer/chat", expires=TODAY.replace(year=2020)),
        entry("example"),
    )
    assert words(result(report)) == [
        "known.yaml:10: nixl length/1: expected fail, but nixl/length/1 is pass: remove the entry",
        "known.yaml:20: nixl length/B*: expected fail, but nixl/length/B+1 is pass: narrow the "
        "entry to what still fails",
        "known.yaml:30: nixl lenght: matches no cell, there is no such connector or check: fix "
        "the spelling or remove the entry",
        "known.yaml:40: nixl transfer/chat: expired, its last day was 2020-12-01: see whether it "
        "still fails, then renew or remove it",
    ]


def test_what_went_as_expected_is_told_apart_from_what_comes_and_goes() -> None:
    report = after(
        [FAIL, FAIL, FAIL, PASS],
        entry(check="length/1", link="https://x.org/7"),
        entry(check="length/B*"),
        entry(check="transfer/chat", flaky=True, reason="A race."),
        entry("example"),
        entry("example", "length/B", flaky=True),
    )
    assert known(result(report)) == [
        "nixl length/1: fail as expected in 1 cell: It is broken. (https://x.org/7)",
        "nixl length/B*: fail as expected in 2 cells: It is broken.",
    ]
    assert flaky(result(report)) == ["nixl transfer/chat: fail in 0 of 1: A race."]
    failed = after([FAIL, PASS, FAIL], entry(check="length/*", flaky=True))
    assert flaky(result(failed)) == ["nixl length/*: fail in 2 of 3: It is broken."]
    assert known(result(failed)) == []


@pytest.mark.parametrize("code", list(ExitCode))
def test_an_entry_that_no_longer_holds_makes_a_run_red(code: ExitCode) -> None:
    stale = result(after([PASS], entry()))
    met = result(after([FAIL], entry()))
    kept = code is ExitCode.INTERRUPTED
    assert expected(code, stale) is (code if kept else ExitCode.NOT_CONFORMANT)
    assert expected(code, met) is code


@pytest.mark.parametrize("state", list(EntryState))
def test_three_states_make_a_run_red_and_no_other(state: EntryState) -> None:
    found = result(after([FAIL], entry()))
    found.entries[0].state = state
    red = state in (EntryState.STALE, EntryState.UNMATCHED, EntryState.EXPIRED)
    assert (expected(ExitCode.CONFORMANT, found) is ExitCode.NOT_CONFORMANT) == red
    assert bool(words(found)) == red
