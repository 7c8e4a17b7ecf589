"""The evidence ladder for several requests through the pair at once."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.answer import Answer
from conformance.case import Case
from conformance.causality import causality
from conformance.client import Body
from conformance.evidence import Proof
from conformance.ladder import accounting, bytes_stored, control, movement, parity
from conformance.metrics import TokenSources
from conformance.pair import Ask


def prove_together(case: Case, ask: Ask, bodies: Sequence[Body]) -> list[Answer]:
    """Send ``bodies`` at once; each has to be answered as the reference answers it alone.

    ``ask``: a request of the same kind, whose variants 1 and 2 the control and the causality step
    use. The steps are evidence of the case; what D answered is returned in the order of bodies.
    """
    pair = case.pair
    proof = Proof(subject=ask.subject)
    case.evidence.proofs.append(proof)
    expected = [pair.expected(ask.endpoint, body) for body in bodies]
    promised = [pair.profile.granularity.promised(e.prompt_tokens, case.block) for e in expected]
    stored = bytes_stored(pair)
    exchange = pair.exchange(ask, *bodies)
    total = sum(answer.prompt_tokens for answer in expected)
    sources = TokenSources.of(exchange.decode_delta)
    proof.steps.append(accounting(sources, total, sum(promised)))
    proof.steps.append(movement(pair, exchange, bytes_stored(pair) - stored, sum(promised)))
    proof.steps.append(causality(pair, ask, promised[0]))
    answers = [legs.decode for legs in exchange.legs]
    for wanted, seen in zip(expected, answers, strict=True):
        proof.steps.append(parity(wanted, seen, pair.model.dtype))
    proof.steps.append(control(pair, ask))
    return answers
