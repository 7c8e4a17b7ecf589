"""What holds of every expectations file, and of every update that is proposed for it."""

from __future__ import annotations

from expectation_samples import CPU, LATER, PLACES, TODAY, entry, ruled
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from test_matrix_samples import cell, column, report

from conformance.errors import UsageError
from conformance.expectations import Entry, Place
from conformance.expectations_outcome import RED, expected, tally
from conformance.expectations_ruling import Ruling
from conformance.expectations_update import Proposal, Sight, propose
from conformance.report import Report
from conformance.report_parts import EntryState
from conformance.verdict import FAILURES, ExitCode, Verdict, exit_code

QUICK = settings(deadline=None, database=None, max_examples=40)

entries = st.builds(
    entry,
    connector=st.sampled_from(["nixl", "example", "*", "n*"]),
    check=st.sampled_from(["length/1", "length/B*", "length", "*", "transfer/*", "absent"]),
    verdict=st.sampled_from(["fail", "degraded"]),
    flaky=st.booleans(),
    expires=st.sampled_from([LATER, TODAY.replace(year=2020)]),
    when=st.sampled_from([None, {"platforms": ["cpu"]}, {"packages": {"vllm": ">0.32"}}]),
)
files = st.lists(entries, max_size=3).map(
    lambda found: [one.model_copy(update={"line": 10 * n}) for n, one in enumerate(found, 1)]
)
judged = st.fixed_dictionaries({place: st.sampled_from(Verdict) for place in PLACES}).map(
    lambda found: {
        place: verdict
        for place, verdict in found.items()
        if verdict not in (Verdict.XFAIL, Verdict.XPASS)
    }
)
Judged = dict[Place, Verdict]


def ruling(found: list[Entry]) -> Ruling:
    try:
        return ruled(*found)
    except UsageError:
        assume(False)
        raise


def run(found: Judged, by: Ruling) -> Report:
    """A run whose cells were judged so, under a file."""
    by_connector = {
        name: [cell(place.cell, verdict) for place, verdict in found.items() if place[0] == name]
        for name in ("nixl", "example")
    }
    for name, cells in by_connector.items():
        for one in cells:
            by.settle(name, one)
    columns = [column(*cells, name=name) for name, cells in by_connector.items()]
    done = report(*columns, expectations=by.result)
    tally(done)
    return done


@QUICK
@given(judged, files)
def test_a_file_lets_through_what_it_names_and_nothing_else(
    found: Judged, known: list[Entry]
) -> None:
    done = run(found, ruling(known))
    for connector in done.connectors:
        for one in connector.cells:
            place = next(p for p in PLACES if (p[0], p.cell) == (connector.name, one.check))
            seen = found[place]
            if seen is Verdict.ERROR:
                assert one.verdict is Verdict.ERROR
            if one.verdict is Verdict.PASS:
                assert seen is Verdict.PASS
            if one.verdict is Verdict.XFAIL:
                assert seen in FAILURES
                assert any(e.covers(place) and e.verdict is seen for e in known)
            if not any(e.covers(place) for e in known):
                assert (one.verdict, one.expectation) == (seen, None)


@QUICK
@given(judged, files)
def test_a_run_with_a_file_is_green_only_if_every_failure_is_named(
    found: Judged, known: list[Entry]
) -> None:
    done = run(found, ruling(known))
    code = expected(exit_code(done.verdicts()), done.expectations)
    bare = exit_code(found.values())
    if code is ExitCode.CONFORMANT and bare is not ExitCode.CONFORMANT:
        assert bare is ExitCode.NOT_CONFORMANT
        failed = {place for place, verdict in found.items() if verdict in FAILURES}
        assert all(any(e.covers(place) for e in known) for place in failed)
    if bare is ExitCode.HARNESS:
        assert code in (ExitCode.HARNESS, ExitCode.NOT_CONFORMANT)


@QUICK
@given(judged, files)
def test_what_an_entry_counts_is_what_was_seen(found: Judged, known: list[Entry]) -> None:
    done = run(found, ruling(known))
    assert done.expectations is not None
    for one, said in zip(done.expectations.entries, known, strict=True):
        assert one.failed + one.passed <= len(one.cells)
        seen = [found.get(place) for place in said.covered(PLACES) if place.name in one.cells]
        assert one.failed == seen.count(said.verdict)
        assert one.passed == seen.count(Verdict.PASS)
        if one.state is EntryState.STALE:
            assert not said.flaky or Verdict.UNSUPPORTED in seen


def applied(known: list[Entry], proposal: Proposal) -> list[Entry]:
    kept = [part for one in known for part in proposal.replaced.get(one.line, (one,))]
    return [*kept, *(one.model_copy(update={"reason": "r"}) for one in proposal.added)]


@QUICK
@given(judged, files)
def test_an_update_makes_the_same_run_green_but_for_what_a_person_has_to_say(
    found: Judged, known: list[Entry]
) -> None:
    first = ruling(known)
    assert first.result is not None
    gone = {one.line for one in first.result.entries if one.state is EntryState.UNMATCHED}
    seen = [
        Sight(place, verdict, CPU)
        for place, verdict in found.items()
        if verdict not in (Verdict.NOT_RUN, Verdict.ERROR)
    ]
    proposal = propose(known, gone, seen, TODAY, LATER)
    done = run(found, ruled(*applied(known, proposal)))
    assert done.expectations is not None
    red = [one for one in done.expectations.entries if one.state in RED]
    assert all(one.state is EntryState.EXPIRED or one.flaky for one in red)
    if not proposal.notes:
        assert not {*FAILURES, Verdict.XPASS} & set(done.verdicts())
    again = propose(applied(known, proposal), (), seen, TODAY, LATER)
    assert (again.replaced, again.added) == ({}, [])
