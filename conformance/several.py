"""The evidence ladder for one request of several prompts."""

from __future__ import annotations

from collections.abc import Sequence

from conformance import expect
from conformance.answer import Answer, all_answers
from conformance.case import Case
from conformance.ladder import PROVEN
from conformance.pair import Ask, Legs
from conformance.parity import compare
from conformance.proof_of_many import climb_many, crossed


def prove_each(case: Case, ask: Ask, alone: Sequence[Answer]) -> None:
    """Climb for variant 0 of ``ask``; ``alone``: the oracle's answer to each prompt by itself."""
    exchange = climb_many(
        case,
        ask,
        alone,
        lambda: case.pair.exchange(ask, ask.body(PROVEN)),
        answers=lambda sent: answers_of(sent.legs[0]),
    )
    seen = answers_of(exchange.legs[0])
    expect.equal(len(seen), len(alone), "answers to one request of several prompts")
    each_its_own(case, alone, seen)


def answers_of(legs: Legs) -> list[Answer]:
    """Decode's answers, in the order of the prompts."""
    return legs.transcript.answers() if legs.transcript else all_answers(legs.decode.raw)


def each_its_own(case: Case, alone: Sequence[Answer], seen: Sequence[Answer]) -> None:
    """Every prompt has the answer it would have had by itself, and nobody else's."""
    dtype = case.pair.model.dtype
    found = [compare(wanted, answer, dtype) for wanted, answer in zip(alone, seen, strict=True)]
    case.saw("each answer against that to its prompt alone", [c.describe() for c in found])
    others = crossed(case, alone, seen)
    case.saw("prompts that got another's answer, and whose", others)
    expect.equal(others, [], "prompts that got another's answer, and whose, by their positions")
    wrong = [number for number, comparison in enumerate(found) if not comparison.equal]
    expect.equal(wrong, [], "positions of prompts not answered as the reference does")
