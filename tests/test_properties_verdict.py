"""What holds of every verdict, whatever the evidence: above all that nothing is green for free."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from conformance import errors
from conformance.errors import CheckFailed, NotHere, Refused, ServerStartError, SuiteError
from conformance.evidence import Evidence, Fact, Outcome, Proof, Rung, Step
from conformance.judge import judge
from conformance.verdict import FAILURES, ExitCode, Verdict, decide, exit_code, worst

QUICK = settings(deadline=None, database=None, max_examples=50)
# What a verdict of evidence says of a connector, best first; a control that is blind says less
# than a broken requirement, since nothing can be believed then.
BEST_FIRST = (Verdict.PASS, Verdict.DEGRADED, Verdict.ERROR, Verdict.FAIL)
BAD = (Outcome.BROKEN, Outcome.RECOMPUTED, Outcome.BLIND)

steps = st.builds(
    Step,
    name=st.sampled_from(Rung),
    outcome=st.sampled_from(Outcome),
    summary=st.sampled_from(["seen", "missing", "other"]),
    figures=st.sampled_from([{}, {"excuse": True}]),
)
proofs = st.builds(Proof, subject=st.just("345 tokens"), steps=st.lists(steps, max_size=6))
facts = st.lists(st.builds(Fact, what=st.just("status"), seen=st.integers()), max_size=2)
evidences = st.builds(Evidence, proofs=st.lists(proofs, max_size=3), facts=facts)
problems = st.sampled_from(
    [
        CheckFailed("x"),
        AssertionError("x"),
        ServerStartError("x"),
        ServerStartError("x", blames_connector=True),
        Refused("x"),
        NotHere("x"),
        SuiteError("x"),
        KeyError("x"),
        TimeoutError("x"),
        *(
            kind("x")
            for kind in vars(errors).values()
            if isinstance(kind, type) and issubclass(kind, SuiteError)
        ),
    ]
)


def outcomes(evidence: Evidence) -> list[Outcome]:
    return [step.outcome for proof in evidence.proofs for step in proof.steps]


def with_step(evidence: Evidence, step: Step) -> Evidence:
    return evidence.model_copy(
        update={"proofs": [*evidence.proofs, Proof(subject="more", steps=[step])]}
    )


@QUICK
@given(evidences)
def test_nothing_is_green_without_a_held_step_or_a_fact(evidence: Evidence) -> None:
    verdict, _ = decide(evidence)
    seen = outcomes(evidence)
    assert (verdict is Verdict.PASS) == (
        not any(bad in seen for bad in BAD) and (Outcome.HELD in seen or bool(evidence.facts))
    )
    assert verdict in BEST_FIRST


@QUICK
@given(evidences, steps)
def test_one_more_step_never_turns_a_verdict_green_unless_it_holds(
    evidence: Evidence, step: Step
) -> None:
    before, after = decide(evidence)[0], decide(with_step(evidence, step))[0]
    if after is Verdict.PASS and before is not Verdict.PASS:
        assert step.outcome is Outcome.HELD
        assert not any(bad in outcomes(evidence) for bad in BAD)


@QUICK
@given(evidences, steps)
def test_a_worse_step_never_improves_a_verdict(evidence: Evidence, step: Step) -> None:
    looked = Outcome.HELD in outcomes(evidence) or evidence.facts
    if looked or any(bad in outcomes(evidence) for bad in BAD):
        before, after = decide(evidence)[0], decide(with_step(evidence, step))[0]
        assert BEST_FIRST.index(after) >= BEST_FIRST.index(before)


@QUICK
@given(evidences)
def test_the_order_of_steps_and_proofs_does_not_matter(evidence: Evidence) -> None:
    shuffled = [proof.model_copy(update={"steps": proof.steps[::-1]}) for proof in evidence.proofs]
    other = Evidence(proofs=shuffled[::-1], facts=evidence.facts)
    assert decide(other)[0] is decide(evidence)[0]
    assert sorted(decide(other)[1].split("; ")) == sorted(decide(evidence)[1].split("; "))
    assert other.reached is evidence.reached


@QUICK
@given(evidences)
def test_what_is_told_twice_counts_once(evidence: Evidence) -> None:
    twice = evidence.model_copy(update={"proofs": [*evidence.proofs, *evidence.proofs]})
    assert decide(twice) == decide(evidence)
    assert twice.reached is evidence.reached


@QUICK
@given(evidences, proofs)
def test_another_proof_never_reaches_further(evidence: Evidence, proof: Proof) -> None:
    order = [None, *Rung]
    more = evidence.model_copy(update={"proofs": [*evidence.proofs, proof]})
    if evidence.proofs:
        assert order.index(more.reached) <= order.index(evidence.reached)
    assert order.index(more.reached) <= order.index(proof.reached)


@QUICK
@given(proofs)
def test_what_was_reached_was_held(proof: Proof) -> None:
    reached = proof.reached
    if reached:
        upto = list(Rung)[: list(Rung).index(reached) + 1]
        below = [step for step in proof.steps if step.name in upto]
        assert {step.outcome for step in below} <= {Outcome.HELD, Outcome.NOT_APPLICABLE}
        assert {step.name for step in below} == set(upto)
        assert Outcome.HELD in {step.outcome for step in below if step.name is reached}


@QUICK
@given(problems, evidences)
def test_a_check_that_ended_with_a_problem_is_never_green(
    problem: BaseException, evidence: Evidence
) -> None:
    found = judge(problem, evidence)
    assert found.verdict is not Verdict.PASS
    assert found.message
    assert found == judge(problem, Evidence())


@QUICK
@given(evidences)
def test_a_check_that_returned_is_judged_by_its_evidence_alone(evidence: Evidence) -> None:
    found = judge(None, evidence)
    assert (found.verdict, found.message) == decide(evidence)
    assert found.excerpt is None
    assert bool(found.message) or found.verdict is Verdict.PASS


verdicts = st.lists(st.sampled_from(Verdict), max_size=6)


@QUICK
@given(verdicts, st.sampled_from(Verdict))
def test_a_run_is_green_only_if_something_ran_and_nothing_is_red(
    before: list[Verdict], more: Verdict
) -> None:
    code = exit_code(before)
    red = {*FAILURES, Verdict.XPASS, Verdict.ERROR}
    assert (code is ExitCode.CONFORMANT) == (
        not red & set(before) and bool({Verdict.PASS, Verdict.XFAIL} & set(before))
    )
    assert exit_code(before[::-1]) is code
    if exit_code([*before, more]) is ExitCode.CONFORMANT:
        assert code in (ExitCode.CONFORMANT, ExitCode.NOTHING_RAN)
        assert more not in red


@QUICK
@given(verdicts, verdicts)
def test_two_groups_are_as_bad_as_the_worse_of_them(
    one: list[Verdict], other: list[Verdict]
) -> None:
    together = worst([*one, *other])
    assert together in {worst(one), worst(other)}
    assert together is worst([*other, *one])
    assert together is worst([worst(group) for group in (one, other) if group])
