"""The evidence ladder for several requests together: at once, or in one body.

Counters are of all of them together, so what they prove is a sum; whose KV went where is proven
by the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from conformance.answer import Answer
from conformance.case import Case
from conformance.causality import causality
from conformance.client import Body
from conformance.evidence import Proof
from conformance.ladder import accounting, bytes_stored, control, movement, parity
from conformance.metrics import TokenSources
from conformance.pair import Ask, Exchange
from conformance.parity import compare


def climb_many(
    case: Case,
    ask: Ask,
    expected: Sequence[Answer],
    send: Callable[[], Exchange],
    *,
    answers: Callable[[Exchange], Sequence[Answer]] | None = None,
    alone: Sequence[Answer] = (),
    cold: bool = True,
    arms: tuple[Ask, Ask] | None = None,
) -> Exchange:
    """All five steps, one proof of the case; what was sent, as it came back.

    ``expected``: the oracle's answer to each prompt that goes through the pair; ``alone``: to each
    that decode computes meanwhile. ``answers``: decode's answers in the order of ``expected``,
    where a leg has more than one. ``cold``: no prompt begins with whole blocks of another.
    ``arms``: what causality and control ask, if not variants of ``ask``.
    """
    pair = case.pair
    proof = Proof(subject=ask.subject)
    case.evidence.proofs.append(proof)
    stored = bytes_stored(pair)
    exchange = send()
    moved = bytes_stored(pair) - stored
    lengths = [answer.prompt_tokens for answer in expected]
    promised = sum(pair.profile.granularity.promised(length, case.block) for length in lengths)
    total = sum(lengths) + sum(answer.prompt_tokens for answer in alone)
    sources = TokenSources.of(exchange.decode_delta)
    swapped, unhanded = arms or (ask, ask)
    proof.steps.append(accounting(sources, total, promised, cold=cold))
    proof.steps.append(movement(pair, exchange, moved, promised))
    proof.steps.append(causality(pair, swapped, promised))
    seen = answers(exchange) if answers else [legs.decode for legs in exchange.legs]
    for wanted, answer in zip([*expected, *alone], [*seen, *exchange.alone], strict=False):
        proof.steps.append(parity(wanted, answer, pair.model.dtype))
    proof.steps.append(control(pair, unhanded))
    return exchange


def prove_at_once(
    case: Case,
    ask: Ask,
    bodies: Sequence[Body],
    *,
    asked: Sequence[Body] = (),
    alone: Sequence[Body] = (),
    ahead: Sequence[Body] = (),
    cold: bool = True,
) -> Exchange:
    """Requests at once, each answered as the reference answers it by itself.

    ``ask``: how they are sent; its own variants serve the arms of the proof that go one by one.
    ``asked``: what is sent for ``bodies`` where the reference is not to be asked that. ``alone``:
    to decode without a handoff, which has to compute them meanwhile. ``ahead``: to prefill without
    a handoff, which the others have to wait for.
    """
    pair = case.pair
    expected, beside = (
        [pair.expected(ask.endpoint, body) for body in group] for group in (bodies, alone)
    )
    return climb_many(
        case,
        ask,
        expected,
        lambda: pair.exchange(ask, *(asked or bodies), alone=alone, ahead=ahead),
        alone=beside,
        cold=cold,
    )


def crossed(
    case: Case, expected: Sequence[Answer], seen: Sequence[Answer]
) -> list[tuple[int, int]]:
    """Who got the right answer to another's prompt, and whose, by their positions."""
    return [
        (mine, other)
        for mine, answer in enumerate(seen)
        for other, wanted in enumerate(expected)
        if other != mine and compare(wanted, answer, case.pair.model.dtype).equal
    ]
