"""Certificates: granted for nothing less than every cell with evidence, and refused in words."""

from __future__ import annotations

from typing import Any

import pytest
from sample_certificates import SET, control, judged, run_of, spoilt
from sample_profiles import profile

from conformance.errors import ReportError
from conformance.evidence import Evidence, Fact, Outcome, Rung
from conformance.profile import Profile
from conformance.requirement_sets import required_cells
from conformance.verdict import Verdict

ONE = "length/B"
NO = {"support": "no", "limit": "it cannot stream", "source": "https://docs.example/limits"}
STREAMING = [name for name in required_cells(SET, profile()) if name.startswith("streaming/")]


def declaring(*features: str) -> Profile:
    return profile(features=dict.fromkeys(features, NO))


def excused(subject: Profile, *features: str) -> Any:
    """A run in which a declaration was heeded."""
    report = run_of(subject)
    for cell in report.connectors[0].cells:
        if cell.feature in features:
            cell.verdict, cell.message = Verdict.UNSUPPORTED, "declared unsupported"
            cell.evidence = Evidence()
    return report


def test_all_cells_pass_with_evidence() -> None:
    made = judged(run_of(profile(digest="abc")), profile(digest="abc"))
    assert made.certified
    assert made.refusals == []
    assert [cell.check for cell in made.cells] == required_cells(SET, profile())
    assert {cell.reached for cell in made.cells} == {Rung.CONTROL}
    assert made.requirement_set.digest == SET.digest
    assert (made.subject.profile_digest, made.model) == ("abc", "tiny-llama")
    assert made.controls[0].found_out is True
    assert made.not_asked == [
        "legs/at-once",
        "multi/each-child",
        "multi/one-child-knows",
        "scheduler/prefix/prefill",
    ]


@pytest.mark.parametrize("verdict", sorted(set(Verdict) - {Verdict.PASS}))
def test_any_other_verdict_of_one_cell_is_a_refusal(verdict: Verdict) -> None:
    made = judged(spoilt(ONE, verdict=verdict, message="so it went"))
    assert not made.certified
    [refusal] = made.refusals
    assert refusal.cell == ONE
    assert "so it went" in refusal.reason
    assert verdict in refusal.reason


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"evidence": Evidence()}, "without evidence"),
        ({"through": "shims.mine: it needs one"}, "won through a shim"),
    ],
)
def test_a_pass_that_proves_nothing_of_the_connector_is_a_refusal(
    changes: dict[str, Any], told: str
) -> None:
    [refusal] = judged(spoilt(ONE, **changes)).refusals
    assert (refusal.cell, told in refusal.reason) == (ONE, True)


def test_evidence_of_steps_that_did_not_apply_is_none() -> None:
    report = run_of(profile())
    cell = report.connectors[0].cell(ONE)
    assert cell
    for step in cell.evidence.proofs[0].steps:
        step.outcome = Outcome.NOT_APPLICABLE
    assert [refusal.cell for refusal in judged(report).refusals] == [ONE]


def test_a_fact_is_evidence() -> None:
    facts = Evidence(facts=[Fact(what="status", seen=400)])
    assert judged(spoilt(ONE, evidence=facts)).certified


def test_a_cell_that_is_not_in_the_report_is_a_refusal() -> None:
    report = run_of(profile())
    report.connectors[0].cells = [c for c in report.connectors[0].cells if c.check != ONE]
    assert [(r.cell, r.reason) for r in judged(report).refusals] == [(ONE, "not in the report")]


def test_a_report_of_another_connector_certifies_nothing() -> None:
    other = judged(run_of(profile(name="other")))
    assert {refusal.reason for refusal in other.refusals} == {"not in the report"}
    assert len(other.refusals) == len(required_cells(SET, profile()))


def test_every_reason_is_told() -> None:
    report = spoilt(ONE, verdict=Verdict.FAIL, message="wrong")
    report.state, report.controls = "interrupted", []
    reasons = [refusal.reason for refusal in judged(report).refusals]
    assert reasons == [
        "the run is interrupted, not finished",
        "no control was found out: the run may be blind",
        "fail: wrong",
    ]


def test_a_reason_is_told_once_with_its_cells_and_failures_come_first() -> None:
    report = run_of(profile())
    for cell in report.connectors[0].cells[:2]:
        cell.verdict, cell.message = Verdict.NOT_RUN, "no time"
    report.connectors[0].cells[2].verdict = Verdict.FAIL
    report.connectors[0].cells[2].message = "wrong"
    names = [cell.check for cell in report.connectors[0].cells[:3]]
    told = list(judged(report).reasons().items())
    assert told == [("fail: wrong", names[2:]), ("not_run: no time", names[:2])]


@pytest.mark.parametrize(
    ("controls", "words"),
    [
        ([], "no control was found out"),
        ([control(Verdict.NOT_RUN)], "no control was found out"),
        ([control(Verdict.PASS)], "Faker was not found out"),
        ([control(), control(Verdict.PASS)], "Faker was not found out"),
        ([control(Verdict.ERROR)], "Faker was not found out"),
    ],
)
def test_a_run_that_cannot_tell_a_fake_certifies_nothing(controls: Any, words: str) -> None:
    report = run_of(profile())
    report.controls = controls
    made = judged(report)
    assert not made.certified
    assert any(words in refusal.reason for refusal in made.refusals)


def test_a_declared_exception_excuses_its_feature_and_is_listed() -> None:
    subject = declaring("streaming")
    made = judged(excused(subject, "streaming"), subject)
    assert made.certified
    [one] = made.exceptions
    assert (one.feature, one.source, one.limit) == ("streaming", NO["source"], NO["limit"])
    assert one.cells == STREAMING


def test_unsupported_without_a_declaration_is_a_refusal() -> None:
    refusals = judged(excused(profile(), "streaming")).refusals
    assert [refusal.cell for refusal in refusals] == STREAMING
    assert all("the profile does not declare it" in refusal.reason for refusal in refusals)


@pytest.mark.parametrize("feature", ["start", "basic-transfer"])
def test_nothing_is_certified_without_start_and_transfer(feature: str) -> None:
    subject = declaring(feature)
    refusals = judged(excused(subject, feature), subject).refusals
    assert refusals
    assert all("cannot be declared away" in refusal.reason for refusal in refusals)


def test_a_declared_exception_does_not_excuse_a_failure() -> None:
    subject = declaring("streaming")
    report = spoilt(STREAMING[0], subject, verdict=Verdict.FAIL, message="torn")
    assert [refusal.cell for refusal in judged(report, subject).refusals] == [STREAMING[0]]


def test_the_ladder_tells_the_worst_of_all_proofs() -> None:
    report = run_of(profile())
    cell = report.connectors[0].cell(ONE)
    assert cell
    second = cell.evidence.proofs[0].model_copy(deep=True)
    second.steps[2].outcome = Outcome.NOT_APPLICABLE
    second.steps[3].outcome = Outcome.BROKEN
    cell.evidence.proofs.append(second)
    found = next(c for c in judged(report).cells if c.check == ONE)
    assert found.ladder[Rung.CAUSALITY] == "held"
    assert found.ladder[Rung.PARITY] == "broken"


def test_a_report_without_an_engine_cannot_be_judged() -> None:
    report = run_of(profile())
    report.engine = None
    with pytest.raises(ReportError, match="names no engine"):
        judged(report)
