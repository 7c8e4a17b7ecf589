"""The matrix says what the reports say: no more, no less, and nothing greener."""

from __future__ import annotations

from datetime import datetime

import pytest
from test_matrix_samples import FEATURE, cell, climbed, column, expected, fact, one, report

from conformance.errors import ReportError
from conformance.evidence import Evidence, Outcome, Proof, Rung, Step
from conformance.features import FEATURES
from conformance.report import Cell, Report
from conformance.verdict import Verdict
from matrix.collect import collect
from matrix.model import MatrixCell


def drawn(*reports: Report, feature: str = FEATURE) -> MatrixCell:
    return collect(reports).cell("nixl", feature)


def verdicts(*cells: Cell) -> Verdict:
    return drawn(one(*cells)).verdict


def test_a_cell_is_as_bad_as_its_worst_check() -> None:
    assert verdicts(cell("a"), cell("b", Verdict.DEGRADED)) is Verdict.DEGRADED
    assert verdicts(cell("a"), cell("b", Verdict.UNSUPPORTED)) is Verdict.UNSUPPORTED
    assert verdicts(cell("a"), cell("b", Verdict.FAIL), cell("c", Verdict.ERROR)) is Verdict.ERROR


@pytest.mark.parametrize("verdict", [v for v in Verdict if v is not Verdict.NOT_RUN])
def test_not_run_neither_dims_nor_hides_what_ran(verdict: Verdict) -> None:
    found = drawn(one(cell("a", verdict), cell("b", Verdict.NOT_RUN, "needs a GPU")))
    assert found.verdict is verdict
    assert found.total == 2
    assert found.tally[Verdict.NOT_RUN] == 1
    assert "needs a GPU" in [reason.text for reason in found.reasons]


def test_what_nobody_ran_is_not_run() -> None:
    planned = drawn(one(cell("a", Verdict.NOT_RUN), cell("b", Verdict.NOT_RUN)))
    assert (planned.verdict, planned.passed, planned.total) == (Verdict.NOT_RUN, 0, 2)
    absent = drawn(one(cell()), feature="streaming")
    assert (absent.verdict, absent.total, absent.checks) == (Verdict.NOT_RUN, 0, ())


@pytest.mark.parametrize("evidence", [Evidence(), Evidence(proofs=[Proof(subject="nothing")])])
def test_a_pass_without_evidence_is_an_error(evidence: Evidence) -> None:
    found = drawn(one(cell(evidence=evidence)))
    assert found.verdict is Verdict.ERROR
    assert "no evidence was recorded" in found.reasons[0].text


def test_a_pass_that_its_evidence_contradicts_is_an_error() -> None:
    step = Step(name=Rung.PARITY, outcome=Outcome.BROKEN, summary="token 3 differs")
    found = drawn(one(cell(evidence=Evidence(proofs=[Proof(subject="p", steps=[step])]))))
    assert found.verdict is Verdict.ERROR
    assert "token 3 differs" in found.reasons[0].text


def test_the_newest_report_wins_for_each_check() -> None:
    old = one(cell("a", Verdict.FAIL, "old"), cell("b"), version="0.31.0")
    new = one(cell("a"), day=1)
    matrix = collect([new, old])
    found = matrix.cell("nixl", FEATURE)
    assert (found.verdict, found.passed, found.total) == (Verdict.PASS, 2, 2)
    came_from = {r.cell.check: matrix.runs[r.run].engine for r in found.checks}
    assert {check: build.version for check, build in came_from.items() if build} == {
        "a": "0.32.0",
        "b": "0.31.0",
    }
    assert [run.run_id for run in matrix.older_runs(found)] == [old.run_id]


def test_a_newer_failure_replaces_an_older_pass() -> None:
    assert drawn(one(cell()), one(cell(verdict=Verdict.FAIL), day=1)).verdict is Verdict.FAIL


def test_a_newer_not_run_does_not_replace_a_result() -> None:
    old, new = one(cell()), one(cell(verdict=Verdict.NOT_RUN, message="no GPU"), day=1)
    matrix = collect([old, new])
    assert matrix.cell("nixl", FEATURE).verdict is Verdict.PASS
    assert matrix.older_runs(matrix.cell("nixl", FEATURE)) == (matrix.runs[0],)
    newest_reason = drawn(one(cell(verdict=Verdict.NOT_RUN, message="no disk")), new).reasons
    assert [reason.text for reason in newest_reason] == ["no GPU"]


def test_a_moment_without_a_zone_is_utc() -> None:
    naive = one(cell(verdict=Verdict.FAIL), started=datetime(2026, 1, 29, 12, 0))
    assert drawn(one(cell()), naive).verdict is Verdict.PASS


def test_rows_are_the_features_in_order_then_unknown_ones() -> None:
    matrix = collect([one(cell(), cell("z", feature="zeta"), cell("y", feature="kv-events"))])
    assert [row.id for row in matrix.rows] == [*(f.id for f in FEATURES), "kv-events", "zeta"]
    assert [row.title for row in matrix.rows if not row.known] == ["Kv events", "Zeta"]
    assert matrix.cell("nixl", "kv-events").verdict is Verdict.PASS


def test_columns_are_described_by_their_newest_report() -> None:
    old, new = column(cell(), title="Old"), column(title="New")
    matrix = collect([report(new, column(name="example"), day=1), report(old)])
    assert [c.title for c in matrix.columns] == ["EXAMPLE", "New"]
    assert matrix.cell("nixl", FEATURE).passed == 1


def test_reach_is_that_of_the_weakest_pass() -> None:
    low, high = cell("a", evidence=climbed(Rung.MOVEMENT)), cell("b")
    seen = cell("c", evidence=fact({"status": 400}))
    failed = cell("d", Verdict.FAIL, evidence=climbed(Rung.ACCOUNTING))
    found = drawn(one(low, high, seen, failed))
    assert (found.reached, found.without_ladder) == (Rung.MOVEMENT, 1)
    step = Step(name=Rung.PARITY, outcome=Outcome.HELD, summary="equal, on no firm ground")
    unfounded = cell("e", evidence=Evidence(proofs=[Proof(subject="p", steps=[step])]))
    assert drawn(one(high, unfounded)).reached is None


def test_checks_are_worst_first_and_reasons_told_once() -> None:
    same = [cell(name, Verdict.FAIL, "broken") for name in ("b", "c")]
    known = cell("d", Verdict.XFAIL, "slow", expectation=expected())
    found = drawn(one(cell("a"), known, *same))
    assert [result.cell.check for result in found.checks] == ["b", "c", "d", "a"]
    assert [reason.text for reason in found.reasons] == ["broken", "slow (expected: fail: issue 7)"]


def test_every_result_of_a_check_counts_when_one_run_has_several() -> None:
    twice = one(cell("a", model="x"), cell("a", Verdict.FAIL, model="y"))
    assert drawn(twice, one(cell("a"), day=-1)).tally == {Verdict.FAIL: 1, Verdict.PASS: 1}


def test_order_and_repetition_of_reports_do_not_matter() -> None:
    reports = [one(cell(message=str(n)), seed=n) for n in range(3)] + [one(cell("b"), day=1)]
    assert collect(reports) == collect([*reports[::-1], *reports])


def test_nothing_to_show_is_an_error() -> None:
    with pytest.raises(ReportError, match=r"no reports to render: give .* report\.json"):
        collect([])
    with pytest.raises(ReportError, match=r"none of the 1 report\(s\) has a connector"):
        collect([report()])
