"""Requests that are under way at the same time: each has to get the answer to its own prompt.

Counters are of all of them together, so what they prove is a sum; whose KV went where is proven
by the answers, which all differ (a model that answers two prompts alike proves nothing here).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from conformance import expect
from conformance.answer import Answer
from conformance.case import Case
from conformance.causality import causality
from conformance.client import Body
from conformance.evidence import Proof
from conformance.ladder import accounting, bytes_stored, control, movement, parity
from conformance.metrics import Meter, TokenSources
from conformance.pair import Ask, Exchange, Pair
from conformance.parity import compare


@dataclass(frozen=True)
class Crowd:
    """What is sent at once.

    ``ask``: how; its own variants serve the arms of the proof that go one by one. ``bodies``:
    through the pair; ``asked``: what is sent for them where that is not what the reference is
    asked. ``alone``: to decode without a handoff, which has to compute them meanwhile. ``cold``:
    no prompt begins with whole blocks of another.
    """

    ask: Ask
    bodies: Sequence[Body]
    asked: Sequence[Body] = ()
    alone: Sequence[Body] = ()
    cold: bool = True


def prove_each(case: Case, crowd: Crowd) -> list[Answer]:
    """One proof for all; the answers of decode to ``bodies``, in their order."""
    pair, ask = case.pair, crowd.ask
    expected = [pair.expected(ask.endpoint, body) for body in crowd.bodies]
    expected_alone = [pair.expected(ask.endpoint, body) for body in crowd.alone]
    proof = Proof(subject=ask.subject)
    case.evidence.proofs.append(proof)
    stored = bytes_stored(pair)
    exchange, alone = _at_once(pair, crowd)
    moved = bytes_stored(pair) - stored
    lengths = [answer.prompt_tokens for answer in expected]
    promised = sum(pair.profile.granularity.promised(n, pair.block_size) for n in lengths)
    total = sum(lengths) + sum(answer.prompt_tokens for answer in alone)
    sources = TokenSources.of(exchange.decode_delta)
    proof.steps.append(accounting(sources, total, promised, cold=crowd.cold))
    proof.steps.append(movement(pair, exchange, moved, promised))
    proof.steps.append(causality(pair, ask, promised))
    seen = [legs.decode for legs in exchange.legs]
    for wanted, answer in zip([*expected, *expected_alone], [*seen, *alone], strict=True):
        proof.steps.append(parity(wanted, answer, pair.model.dtype))
    proof.steps.append(control(pair, ask))
    return seen


def must_differ(case: Case, bodies: Sequence[Body]) -> None:
    """Raises unless the reference answers every two of these differently."""
    answers = [case.pair.expected("completions", body) for body in bodies]
    alike = len(answers) - len({answer.token_ids for answer in answers})
    expect.equal(alike, 0, "prompts that the reference answers as it does another")


def nobody_got_anothers(case: Case, bodies: Sequence[Body], seen: Sequence[Answer]) -> None:
    """No answer may be the reference's answer to another of the prompts."""
    expected = [case.pair.expected("completions", body) for body in bodies]
    crossed = [
        (mine, other)
        for mine, answer in enumerate(seen)
        for other, wanted in enumerate(expected)
        if other != mine and compare(wanted, answer, case.pair.model.dtype).equal
    ]
    case.saw("requests that got the answer to another, as (request, other)", crossed)
    expect.equal(crossed, [], "requests that got the answer to another's prompt")


def _at_once(pair: Pair, crowd: Crowd) -> tuple[Exchange, list[Answer]]:
    bodies = crowd.asked or crowd.bodies
    if not crowd.alone:
        return pair.exchange(crowd.ask, *bodies), []
    on_prefill, on_decode = Meter.on(pair.prefill), Meter.on(pair.decode)
    endpoint = crowd.ask.endpoint
    with ThreadPoolExecutor(len(bodies) + len(crowd.alone)) as pool:
        computed = [pool.submit(pair.decode.ask, endpoint, body) for body in crowd.alone]
        legs = list(pool.map(lambda body: pair.both_legs(crowd.ask, body), bodies))
        alone = [answer.result() for answer in computed]
    moved = {
        side: [m.metric for m in pair.profile.movement if m.side == side and m.metric]
        for side in ("prefill", "decode")
    }
    deltas = on_prefill.delta(*moved["prefill"]), on_decode.delta(*moved["decode"])
    return Exchange(legs, *deltas), alone
