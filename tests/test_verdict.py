"""Verdicts: the rule that turns evidence into one, and a run's verdicts into an exit code."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.evidence import Evidence, Fact, Outcome, Proof, Rung, Step
from conformance.verdict import MEANING, SEVERITY, ExitCode, Verdict, decide, exit_code, worst

HELD, BROKEN, RECOMPUTED = Outcome.HELD, Outcome.BROKEN, Outcome.RECOMPUTED
BLIND, NOT_APPLICABLE = Outcome.BLIND, Outcome.NOT_APPLICABLE
FACT = Fact(what="error body", seen={"code": 400})


def evidence(*outcomes: Outcome, facts: tuple[Fact, ...] = ()) -> Evidence:
    rungs = list(Rung)
    steps = [
        Step(name=rungs[i % len(rungs)], outcome=outcome, summary=f"step {i} is {outcome}")
        for i, outcome in enumerate(outcomes)
    ]
    return Evidence(proofs=[Proof(subject="345 tokens", steps=steps)], facts=list(facts))


outcome_lists = st.lists(st.lists(st.sampled_from(Outcome), max_size=5), max_size=3)


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        ((HELD,), Verdict.PASS),
        ((HELD, NOT_APPLICABLE), Verdict.PASS),
        ((NOT_APPLICABLE,), Verdict.ERROR),
        ((), Verdict.ERROR),
        ((HELD, RECOMPUTED), Verdict.DEGRADED),
        ((RECOMPUTED, NOT_APPLICABLE), Verdict.DEGRADED),
        ((HELD, BLIND), Verdict.ERROR),
        ((RECOMPUTED, BLIND), Verdict.ERROR),
        ((BLIND, RECOMPUTED), Verdict.ERROR),
        ((HELD, BROKEN), Verdict.FAIL),
        ((BROKEN, RECOMPUTED), Verdict.FAIL),
        ((BLIND, BROKEN), Verdict.FAIL),
        ((RECOMPUTED, BLIND, HELD, NOT_APPLICABLE, BROKEN), Verdict.FAIL),
    ],
)
def test_precedence_of_outcomes(outcomes: tuple[Outcome, ...], verdict: Verdict) -> None:
    assert decide(evidence(*outcomes))[0] is verdict


def test_precedence_holds_across_proofs() -> None:
    first, second = evidence(RECOMPUTED).proofs[0], evidence(HELD, BROKEN).proofs[0]
    assert decide(Evidence(proofs=[first, second]))[0] is Verdict.FAIL


def test_nothing_recorded_is_an_error_and_says_so() -> None:
    for empty in (Evidence(), Evidence(proofs=[Proof(subject="nothing")])):
        verdict, message = decide(empty)
        assert verdict is Verdict.ERROR
        assert message == "no evidence was recorded: the check proves nothing"


def test_a_fact_alone_is_evidence_but_excuses_nothing() -> None:
    assert decide(Evidence(facts=[FACT])) == (Verdict.PASS, "")
    assert decide(evidence(NOT_APPLICABLE, facts=(FACT,)))[0] is Verdict.PASS
    assert decide(evidence(RECOMPUTED, facts=(FACT,)))[0] is Verdict.DEGRADED
    assert decide(evidence(BROKEN, facts=(FACT,)))[0] is Verdict.FAIL


def test_the_reason_names_each_deciding_step_once() -> None:
    steps = [
        Step(name=Rung.PARITY, outcome=BROKEN, summary="another answer"),
        Step(name=Rung.PARITY, outcome=BROKEN, summary="another answer"),
        Step(name=Rung.ACCOUNTING, outcome=BROKEN, summary="sums differ"),
        Step(name=Rung.MOVEMENT, outcome=RECOMPUTED, summary="did not move"),
    ]
    _, reason = decide(Evidence(proofs=[Proof(subject="s", steps=steps)]))
    assert reason == "parity: another answer; accounting: sums differ"


def test_a_pass_mentions_only_what_was_excused() -> None:
    excused = Step(
        name=Rung.ACCOUNTING,
        outcome=NOT_APPLICABLE,
        summary="promises nothing at this length",
        figures={"excuse": True},
    )
    silent = Step(name=Rung.MOVEMENT, outcome=NOT_APPLICABLE, summary="keeps no record")
    held = Step(name=Rung.PARITY, outcome=HELD, summary="equal")
    steps = [excused, silent, held]
    expected = (Verdict.PASS, "accounting: promises nothing at this length")
    assert decide(Evidence(proofs=[Proof(subject="s", steps=steps)])) == expected


@settings(deadline=None, database=None, max_examples=60)
@given(outcome_lists, st.booleans())
def test_no_pass_without_proof_and_none_beside_a_broken_step(
    lists: list[list[Outcome]], fact: bool
) -> None:
    proofs = [proof for outcomes in lists for proof in evidence(*outcomes).proofs]
    verdict, _ = decide(Evidence(proofs=proofs, facts=[FACT] if fact else []))
    outcomes = {outcome for found in lists for outcome in found}
    if verdict is Verdict.PASS:
        assert HELD in outcomes or fact
        assert outcomes <= {HELD, NOT_APPLICABLE}
    assert (BROKEN in outcomes) == (verdict is Verdict.FAIL)
    assert verdict in {Verdict.PASS, Verdict.FAIL, Verdict.DEGRADED, Verdict.ERROR}


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ([], ExitCode.NOTHING_RAN),
        ([Verdict.NOT_RUN, Verdict.NOT_RUN], ExitCode.NOTHING_RAN),
        ([Verdict.NOT_RUN, Verdict.UNSUPPORTED], ExitCode.NOTHING_RAN),
        ([Verdict.PASS, Verdict.NOT_RUN, Verdict.UNSUPPORTED], ExitCode.CONFORMANT),
        ([Verdict.XFAIL], ExitCode.CONFORMANT),
        ([Verdict.PASS, Verdict.ERROR], ExitCode.HARNESS),
        ([Verdict.NOT_RUN, Verdict.ERROR], ExitCode.HARNESS),
        ([Verdict.PASS, Verdict.FAIL], ExitCode.NOT_CONFORMANT),
        ([Verdict.PASS, Verdict.DEGRADED], ExitCode.NOT_CONFORMANT),
        ([Verdict.PASS, Verdict.XPASS], ExitCode.NOT_CONFORMANT),
        ([Verdict.ERROR, Verdict.FAIL], ExitCode.NOT_CONFORMANT),
    ],
)
def test_exit_code(verdicts: list[Verdict], code: ExitCode) -> None:
    assert exit_code(verdicts) is code


def test_exit_codes_are_the_documented_numbers() -> None:
    assert [int(code) for code in ExitCode] == [0, 1, 2, 3, 4, 130]


def test_worst_is_the_first_in_severity() -> None:
    assert worst([]) is Verdict.NOT_RUN
    for place, verdict in enumerate(SEVERITY):
        assert worst(SEVERITY[place:]) is verdict
    assert set(SEVERITY) == set(Verdict) == set(MEANING)
