"""Expectations applied to a run: which cells they are about, and what that makes of a verdict."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from expectation_samples import CPU, LATER, PLACES, TODAY, entry, file_of, ruled
from hypothesis import given, settings
from hypothesis import strategies as st
from test_matrix_samples import cell

from conformance.errors import UsageError
from conformance.expectations import Entry, Facts, Place
from conformance.expectations_ruling import Ruling, Scope, rule
from conformance.report import Cell
from conformance.report_parts import EntryResult, EntryState, Expected
from conformance.verdict import FAILURES, Verdict, against

NIXL = [place for place in PLACES if place.connector == "nixl"]
GONE = Place("nixl", "gone", "gone/1")


def settled(verdict: Verdict, *entries: Entry, check: str = "length/1", **more: Any) -> Cell:
    found = cell(check, verdict, "as seen")
    ruled(*entries, **more).settle("nixl", found)
    return found


def first(*entries: Entry, **more: Any) -> EntryResult:
    result = ruled(*entries, **more).result
    assert result is not None
    return result.entries[0]


@pytest.mark.parametrize(
    ("found", "expected", "flaky", "verdict"),
    [
        (Verdict.FAIL, Verdict.FAIL, False, Verdict.XFAIL),
        (Verdict.FAIL, Verdict.FAIL, True, Verdict.XFAIL),
        (Verdict.DEGRADED, Verdict.DEGRADED, False, Verdict.XFAIL),
        (Verdict.FAIL, Verdict.DEGRADED, False, Verdict.FAIL),
        (Verdict.DEGRADED, Verdict.FAIL, True, Verdict.DEGRADED),
        (Verdict.PASS, Verdict.FAIL, False, Verdict.XPASS),
        (Verdict.PASS, Verdict.DEGRADED, False, Verdict.XPASS),
        (Verdict.PASS, Verdict.FAIL, True, Verdict.PASS),
        (Verdict.NOT_RUN, Verdict.FAIL, False, Verdict.NOT_RUN),
        (Verdict.UNSUPPORTED, Verdict.FAIL, False, Verdict.UNSUPPORTED),
        (Verdict.ERROR, Verdict.FAIL, False, Verdict.ERROR),
        (Verdict.ERROR, Verdict.FAIL, True, Verdict.ERROR),
    ],
)
def test_only_the_expected_failure_is_let_through(
    found: Verdict, expected: Verdict, flaky: bool, verdict: Verdict
) -> None:
    assert against(found, expected, flaky=flaky) is verdict
    assert settled(found, entry(verdict=expected, flaky=flaky)).verdict is verdict


@settings(deadline=None, database=None)
@given(st.sampled_from(Verdict), st.sampled_from(Verdict), st.booleans())
def test_no_expectation_makes_an_error_green(
    found: Verdict, expected: Verdict, flaky: bool
) -> None:
    verdict = against(found, expected, flaky=flaky)
    if found is Verdict.ERROR:
        assert verdict is Verdict.ERROR
    if verdict is Verdict.PASS:
        assert found is Verdict.PASS
    if verdict is Verdict.XFAIL and found is not Verdict.XFAIL:
        assert found is expected
        assert found in FAILURES
    assert verdict in (found, Verdict.XFAIL, Verdict.XPASS)


@settings(deadline=None, database=None, max_examples=60)
@given(
    st.sampled_from(Verdict),
    st.lists(
        st.builds(
            entry,
            connector=st.sampled_from(["nixl", "*", "example"]),
            check=st.sampled_from(["length/1", "length/*", "*", "transfer/chat"]),
            verdict=st.sampled_from(["fail", "degraded"]),
            flaky=st.booleans(),
        ),
        max_size=3,
    ),
)
def test_whatever_a_file_says_an_error_stays_one(verdict: Verdict, entries: list[Entry]) -> None:
    try:
        found = settled(verdict, *entries)
    except UsageError as problem:
        assert "both speak of" in str(problem)  # noqa: PT017 (more than one entry is no error)
        assert len(entries) > 1
        return
    about = [one for one in entries if one.covers(PLACES[0])]
    assert (found.expectation is None) == (not about)
    assert not about or found.expectation.seen is verdict  # type: ignore[union-attr]
    if verdict is Verdict.ERROR or not about:
        assert found.verdict is verdict


def test_a_cell_keeps_what_was_seen_and_what_was_known() -> None:
    found = settled(Verdict.FAIL, entry(reason="It hangs.", link="https://x.org/7", flaky=True))
    assert found.message == "as seen"
    assert found.expectation == Expected(
        at="known.yaml:10",
        verdict=Verdict.FAIL,
        seen=Verdict.FAIL,
        reason="It hangs.",
        link="https://x.org/7",
        expires=LATER,
        flaky=True,
    )
    assert found.expectation.words == "flaky, at times fail: It hangs. (https://x.org/7)"
    plain = settled(Verdict.DEGRADED, entry(verdict="degraded")).expectation
    assert plain is not None
    assert plain.words == "degraded: It is broken."


def test_an_unexpected_pass_says_where_to_remove_what() -> None:
    assert settled(Verdict.PASS, entry()).message == (
        "passes, where known.yaml:10 expects fail: remove it there, so that a relapse is seen"
    )
    assert settled(Verdict.PASS, entry(flaky=True)).message == "as seen"


def test_what_no_entry_is_about_stays_as_it_is() -> None:
    for entries in ([], [entry("example")], [entry(check="length/B")]):
        found = settled(Verdict.FAIL, *entries)
        assert (found.verdict, found.message) == (Verdict.FAIL, "as seen")
        assert found.expectation is None


def test_a_run_without_a_file_expects_nothing() -> None:
    ruling = Ruling()
    found = cell("length/1", Verdict.FAIL)
    ruling.settle("nixl", found)
    assert (found.verdict, found.expectation, ruling.result) == (Verdict.FAIL, None, None)


def test_two_entries_that_speak_of_one_cell_are_refused() -> None:
    with pytest.raises(UsageError) as caught:
        ruled(entry(), entry(check="transfer/chat"), entry("*", "length/*", verdict="degraded"))
    assert str(caught.value) == (
        "expectations known.yaml: lines 10 and 30 both speak of nixl/length/1; narrow one of "
        "them, or remove it"
    )


def test_entries_that_do_not_hold_here_speak_of_nothing() -> None:
    elsewhere = entry(when={"packages": {"vllm": ">0.32.0"}})
    expired = entry(expires=TODAY - timedelta(days=1))
    assert settled(Verdict.FAIL, elsewhere, entry(), expired).verdict is Verdict.XFAIL
    assert settled(Verdict.FAIL, elsewhere, expired).verdict is Verdict.FAIL
    assert settled(Verdict.FAIL, expired).expectation is None


def test_an_entry_as_a_report_has_it() -> None:
    given = entry(check="length/*", reason="r", link="https://x.org/7", when={"platforms": ["cpu"]})
    result = ruled(given).result
    assert result is not None
    assert (result.file, result.digest, result.day) == ("known.yaml", "abc", TODAY)
    assert result.entries == [
        EntryResult(
            line=10,
            connector="nixl",
            check="length/*",
            verdict=Verdict.FAIL,
            reason="r",
            link="https://x.org/7",
            when="on cpu",
            expires=LATER,
            flaky=False,
            state=EntryState.UNTRIED,
            note="",
            cells=["nixl/length/1", "nixl/length/B", "nixl/length/B+1"],
        )
    ]


@pytest.mark.parametrize(
    ("given", "more", "state", "note"),
    [
        ({}, {}, EntryState.UNTRIED, ""),
        ({"expires": TODAY}, {}, EntryState.UNTRIED, ""),
        (
            {"check": "lenght/*"},
            {},
            EntryState.UNMATCHED,
            "there is no such connector or check",
        ),
        (
            {"connector": "nixxl", "expires": TODAY - timedelta(days=1)},
            {},
            EntryState.UNMATCHED,
            "there is no such connector or check",
        ),
        (
            {"expires": TODAY - timedelta(days=1)},
            {},
            EntryState.EXPIRED,
            "its last day was 2026-11-30",
        ),
        (
            {"expires": TODAY - timedelta(days=1)},
            {"planned": []},
            EntryState.EXPIRED,
            "its last day was 2026-11-30",
        ),
        (
            {"when": {"platforms": ["cuda"]}},
            {},
            EntryState.ELSEWHERE,
            "only on cuda, and this is cpu",
        ),
        # Not asked for, so nothing is known of it.
        ({"connector": "example"}, {"planned": NIXL}, EntryState.UNTRIED, ""),
        # Asked for, and the run has no such cell.
        (
            {"check": "gone/*"},
            {"selected": [*PLACES, GONE], "known": [*PLACES, GONE]},
            EntryState.UNMATCHED,
            "the run was asked for it, and has no such cell",
        ),
        ({"check": "gone/*"}, {"known": [*PLACES, GONE]}, EntryState.UNTRIED, ""),
        # Nor would it have one here.
        (
            {"check": "gone/*", "when": {"platforms": ["cuda"]}},
            {"selected": [*PLACES, GONE], "known": [*PLACES, GONE]},
            EntryState.ELSEWHERE,
            "only on cuda, and this is cpu",
        ),
    ],
)
def test_the_state_of_an_entry_before_anything_is_tried(
    given: dict[str, Any], more: dict[str, Any], state: EntryState, note: str
) -> None:
    found = first(entry(**given), **more)
    assert (found.state, found.note) == (state, note)
    counts = state is EntryState.UNTRIED and "planned" not in more and "known" not in more
    assert bool(found.cells) == counts
    assert found.when == ("on cuda" if "when" in given else "")


def test_each_connector_has_facts_of_its_own() -> None:
    facts = {"nixl": CPU, "example": Facts.of("cpu", "vllm", "0.31.0", {})}
    file = file_of(entry("*", "length/1", when={"packages": {"vllm": "<0.32"}}))
    result = rule(file, Scope(PLACES, PLACES, PLACES), lambda name: facts[name], TODAY).result
    assert result is not None
    assert result.entries[0].cells == ["example/length/1"]
    assert result.entries[0].note == ""
