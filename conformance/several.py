"""The evidence ladder for several prompts: in one request, or in several at once."""

from __future__ import annotations

from collections.abc import Sequence

from conformance import expect
from conformance.answer import Answer, all_answers
from conformance.case import Case
from conformance.causality import causality
from conformance.client import Body
from conformance.evidence import Proof
from conformance.ladder import PROVEN, accounting, bytes_stored, control, movement, parity
from conformance.metrics import TokenSources
from conformance.pair import Ask, Exchange, Legs
from conformance.parity import compare


def prove_each(case: Case, ask: Ask, alone: Sequence[Answer]) -> None:
    """Climb for variant 0 of ``ask``; ``alone``: the oracle's answer to each prompt by itself."""
    exchange, proof = _exchanged(case, ask, [ask.body(PROVEN)], alone)
    seen = answers_of(exchange.legs[0])
    _compared(case, ask, proof, alone, seen)
    expect.equal(len(seen), len(alone), "answers to one request of several prompts")
    each_its_own(case, alone, seen)


def prove_at_once(case: Case, ask: Ask, bodies: Sequence[Body]) -> Exchange:
    """Climb for requests at once, all together; ``ask``'s own variants serve the other arms."""
    alone = [case.pair.expected(ask.endpoint, body) for body in bodies]
    exchange, proof = _exchanged(case, ask, bodies, alone)
    _compared(case, ask, proof, alone, [legs.decode for legs in exchange.legs])
    return exchange


def _exchanged(
    case: Case, ask: Ask, bodies: Sequence[Body], alone: Sequence[Answer]
) -> tuple[Exchange, Proof]:
    pair = case.pair
    proof = Proof(subject=ask.subject)
    case.evidence.proofs.append(proof)
    stored = bytes_stored(pair)
    exchange = pair.exchange(ask, *bodies)
    stored = bytes_stored(pair) - stored
    lengths = [answer.prompt_tokens for answer in alone]
    promised = sum(pair.profile.granularity.promised(length, case.block) for length in lengths)
    proof.steps.append(accounting(TokenSources.of(exchange.decode_delta), sum(lengths), promised))
    proof.steps.append(movement(pair, exchange, stored, promised))
    proof.steps.append(causality(pair, ask, promised))
    return exchange, proof


def _compared(
    case: Case, ask: Ask, proof: Proof, alone: Sequence[Answer], seen: Sequence[Answer]
) -> None:
    for wanted, answer in zip(alone, seen, strict=False):
        proof.steps.append(parity(wanted, answer, case.pair.model.dtype))
    proof.steps.append(control(case.pair, ask))


def answers_of(legs: Legs) -> list[Answer]:
    """Decode's answers, in the order of the prompts."""
    return legs.transcript.answers() if legs.transcript else all_answers(legs.decode.raw)


def each_its_own(case: Case, alone: Sequence[Answer], seen: Sequence[Answer]) -> None:
    """Every prompt has the answer it would have had by itself, and nobody else's."""
    dtype = case.pair.model.dtype
    found = [compare(wanted, answer, dtype) for wanted, answer in zip(alone, seen, strict=True)]
    case.saw("each answer against that to its prompt alone", [c.describe() for c in found])
    others = [
        (number, other)
        for number, answer in enumerate(seen)
        for other, wanted in enumerate(alone)
        if other != number and compare(wanted, answer, dtype).equal
    ]
    case.saw("prompts that got another's answer, and whose", others)
    expect.equal(others, [], "prompts that got another's answer, and whose, by their positions")
    wrong = [number for number, comparison in enumerate(found) if not comparison.equal]
    expect.equal(wrong, [], "positions of prompts not answered as the reference does")
