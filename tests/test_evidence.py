"""How far up the ladder evidence got: never further than its weakest proof."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from conformance.evidence import Evidence, Outcome, Proof, Rung, Step

ALL = tuple(Rung)


def step(rung: Rung, outcome: Outcome = Outcome.HELD) -> Step:
    return Step(name=rung, outcome=outcome, summary="seen")


def proof(*steps: Step) -> Proof:
    return Proof(subject="345 tokens", steps=list(steps))


def held(upto: Rung) -> Proof:
    return proof(*(step(rung) for rung in ALL[: ALL.index(upto) + 1]))


@pytest.mark.parametrize("top", ALL)
def test_reached_is_the_highest_held_step(top: Rung) -> None:
    assert held(top).reached is top


def test_an_empty_proof_reached_nothing() -> None:
    assert proof().reached is None
    assert Evidence().reached is None


def test_a_missing_step_ends_the_climb() -> None:
    assert proof(step(Rung.MOVEMENT), step(Rung.CONTROL)).reached is None
    assert proof(step(Rung.ACCOUNTING), step(Rung.CAUSALITY)).reached is Rung.ACCOUNTING


@pytest.mark.parametrize("outcome", [Outcome.BROKEN, Outcome.RECOMPUTED, Outcome.BLIND])
def test_a_step_that_did_not_hold_ends_the_climb(outcome: Outcome) -> None:
    steps = [step(rung) for rung in ALL]
    steps[2] = step(Rung.CAUSALITY, outcome)
    assert proof(*steps).reached is Rung.MOVEMENT


def test_a_step_that_does_not_apply_is_passed_over_but_not_reached() -> None:
    skipped = step(Rung.MOVEMENT, Outcome.NOT_APPLICABLE)
    assert proof(step(Rung.ACCOUNTING), skipped).reached is Rung.ACCOUNTING
    steps = (step(Rung.ACCOUNTING), skipped, step(Rung.CAUSALITY))
    assert proof(*steps).reached is Rung.CAUSALITY
    assert proof(step(Rung.ACCOUNTING, Outcome.NOT_APPLICABLE)).reached is None


def test_a_step_taken_twice_must_hold_twice() -> None:
    below = [step(rung) for rung in ALL[:3]]
    twice = [step(Rung.PARITY), step(Rung.PARITY)]
    assert proof(*below, *twice).reached is Rung.PARITY
    for order in ((Outcome.HELD, Outcome.BROKEN), (Outcome.BROKEN, Outcome.HELD)):
        mixed = [step(Rung.PARITY, outcome) for outcome in order]
        assert proof(*below, *mixed, step(Rung.CONTROL)).reached is Rung.CAUSALITY


def test_a_step_taken_twice_counts_when_one_applied() -> None:
    mixed = [step(Rung.PARITY, Outcome.NOT_APPLICABLE), step(Rung.PARITY)]
    assert proof(*(step(rung) for rung in ALL[:3]), *mixed).reached is Rung.PARITY


def test_the_order_of_recording_does_not_matter() -> None:
    assert proof(*(step(rung) for rung in reversed(ALL))).reached is Rung.CONTROL


def test_evidence_is_as_high_as_its_weakest_proof() -> None:
    proofs = [held(Rung.CONTROL), held(Rung.MOVEMENT), held(Rung.PARITY)]
    assert Evidence(proofs=proofs).reached is Rung.MOVEMENT
    assert Evidence(proofs=[*proofs, proof()]).reached is None


def test_unknown_words_are_refused() -> None:
    fields = {"name": "parity", "outcome": "held", "summary": "s"}
    assert Step.model_validate(fields).outcome is Outcome.HELD
    for wrong in ({"outcome": "fine"}, {"name": "trust"}, {"extra": 1}):
        with pytest.raises(ValidationError):
            Step.model_validate(fields | wrong)
