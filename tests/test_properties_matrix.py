"""What holds of every matrix: the order of its reports says nothing, and nothing gets greener."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from test_matrix_samples import cell, climbed, column, control, expected, report

from conformance.evidence import Evidence, Rung
from conformance.report import Cell, ConnectorResult, Report
from conformance.verdict import FAILURES, Verdict, decide
from matrix.collect import collect
from matrix.diff import Kind, diff
from matrix.model import Matrix
from matrix.parts import CheckResult

QUICK = settings(deadline=None, database=None, max_examples=20)
CHECKS = ("start/ready", "transfer/completion", "a/1")
GREEN = (Verdict.PASS, Verdict.XPASS)


@st.composite
def cells(draw: st.DrawFn, check: str) -> Cell:
    verdict = draw(st.sampled_from(Verdict))
    proven = draw(st.booleans())
    evidence = climbed(draw(st.sampled_from(Rung))) if proven else Evidence()
    flaky = draw(st.booleans())
    known = expected(flaky=flaky, seen=Verdict.FAIL) if verdict is Verdict.XFAIL else None
    message = draw(st.sampled_from(["", "slow"]))
    return cell(check, verdict, message, evidence=evidence, expectation=known)


@st.composite
def columns(draw: st.DrawFn, name: str) -> ConnectorResult:
    chosen = draw(st.lists(st.sampled_from(CHECKS), unique=True, max_size=3))
    return column(*(draw(cells(check)) for check in chosen), name=name)


@st.composite
def runs(draw: st.DrawFn) -> Report:
    names = draw(st.lists(st.sampled_from(["nixl", "example"]), unique=True, min_size=1))
    caught = draw(st.sampled_from([None, Verdict.FAIL, Verdict.PASS, Verdict.NOT_RUN]))
    return report(
        *(draw(columns(name)) for name in names),
        day=draw(st.integers(0, 3)),
        seed=draw(st.integers(0, 1)),
        controls=[control(caught)] if caught else [],
    )


several = st.lists(runs(), min_size=1, max_size=4)


def results(matrix: Matrix) -> dict[tuple[str, str], CheckResult]:
    return {
        (found.connector, result.cell.check): result
        for found in matrix.cells
        for result in found.checks
    }


@QUICK
@given(several, st.randoms())
def test_order_and_repetition_of_reports_do_not_matter(
    reports: list[Report], random: Random
) -> None:
    mixed = [*reports, reports[0]]
    random.shuffle(mixed)
    assert collect(mixed) == collect(reports)


@QUICK
@given(several)
def test_nothing_is_green_that_no_report_proves(reports: list[Report]) -> None:
    proven = {
        (connector.name, found.check)
        for one in reports
        for connector in one.connectors
        for found in connector.cells
        if found.verdict in GREEN and decide(found.evidence)[0] is Verdict.PASS
    }
    for place, result in results(collect(reports)).items():
        if result.cell.verdict in GREEN:
            assert place in proven


@QUICK
@given(several)
def test_every_check_is_shown_as_some_report_has_it_or_as_an_error(reports: list[Report]) -> None:
    told = {
        (connector.name, found.check, found.verdict)
        for one in reports
        for connector in one.connectors
        for found in connector.cells
    }
    shown = results(collect(reports))
    assert shown.keys() == {place[:2] for place in told}
    for place, result in shown.items():
        assert (*place, result.cell.verdict) in told or result.cell.verdict is Verdict.ERROR


@QUICK
@given(several)
def test_what_was_not_run_hides_nothing(reports: list[Report]) -> None:
    for place, result in results(collect(reports)).items():
        if result.cell.verdict is Verdict.NOT_RUN:
            for one in reports:
                own = one.connector(place[0])
                found = own.cell(place[1]) if own else None
                assert found is None or found.verdict is Verdict.NOT_RUN


@QUICK
@given(several)
def test_a_cell_is_as_bad_as_its_worst_check(reports: list[Report]) -> None:
    for found in collect(reports).cells:
        seen = {result.cell.verdict for result in found.checks}
        if found.verdict is Verdict.PASS:
            assert seen <= {Verdict.PASS, Verdict.NOT_RUN, Verdict.UNSUPPORTED}
        for failure in FAILURES:
            if failure in seen:
                assert found.verdict in (*FAILURES, Verdict.ERROR)
        assert sum(found.tally.values()) == found.total == len(found.checks)
        assert found.passed == found.tally.get(Verdict.PASS, 0)


@QUICK
@given(several, several)
def test_a_diff_tells_every_change_once_and_a_loss_by_its_code(
    before: list[Report], after: list[Report]
) -> None:
    old, new = collect(before), collect(after)
    found = diff(old, new)
    then, now = results(old), results(new)
    assert len(found.changes) + found.same == len(then.keys() | now.keys())
    places = [(change.connector, change.check) for change in found.changes]
    assert len(set(places)) == len(places)
    for change in found.changes:
        passed = then.get((change.connector, change.check))
        if change.kind is Kind.LOST:
            assert passed is not None
            assert passed.cell.verdict in GREEN
        if change.kind is Kind.FLAKY:
            assert Verdict.ERROR not in (change.before and change.before.verdict,)
    assert (found.exit_code != 0) == bool(found.of(Kind.LOST))
    assert diff(old, old).changes == ()
