"""Climbs the evidence ladder for prompts whose first blocks decode has in its own cache.

Only the rest may then come from outside, it has to be put behind what is there already, and it
has to be used: connectors that count blocks from the prompt's start get this wrong
(vllm#48471: MoRIIO asks for 12 blocks where 0 are missing).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from conformance.causality import VARIANT, causality
from conformance.client import Body, Client
from conformance.errors import NotHere
from conformance.evidence import Outcome, Proof, Rung, Step
from conformance.ladder import CONTROL, PROVEN, Climbed, bytes_stored, excused, movement, parity
from conformance.metrics import CACHE_CONFIG, Meter, TokenSources
from conformance.pair import Ask, Pair


@dataclass(frozen=True)
class Warmth:
    """What decode knows of each prompt before it is asked.

    ``cached``: tokens, whole blocks; ``prepare`` has them computed for a body.
    """

    cached: int
    prepare: Callable[[Body], None]


def must_cache_prefixes(*clients: Client) -> None:
    """Raises :class:`NotHere` for servers that say that they were started without."""
    for client in clients:
        if client.counters().cache_config("enable_prefix_caching") == "False":
            raise NotHere(
                f"the {client.server.role} server runs without prefix caching "
                f"({CACHE_CONFIG}): it knows no prompt twice"
            )


def climb_warm(pair: Pair, ask: Ask, warmth: Warmth, proof: Proof) -> Climbed:
    """All five steps; those that send something to decode have it prepared before."""
    body = ask.body(PROVEN)
    expected = pair.expected(ask.endpoint, body)
    warmth.prepare(body)
    stored = bytes_stored(pair)
    exchange = pair.exchange(ask, body)
    moved = bytes_stored(pair) - stored
    promised = pair.profile.granularity.promised(expected.prompt_tokens, pair.block_size)
    due = max(promised - warmth.cached, 0)
    sources = TokenSources.of(exchange.decode_delta)
    proof.steps.append(accounting(sources, expected.prompt_tokens, due, warmth.cached))
    proof.steps.append(_movement(pair, due, lambda: movement(pair, exchange, moved, due)))
    if due:
        warmth.prepare(ask.body(VARIANT))
    proof.steps.append(causality(pair, ask, due))
    proof.steps.append(parity(expected, exchange.legs[0].decode, pair.model.dtype))
    proof.steps.append(control(pair, ask, warmth))
    return Climbed(proof, expected, exchange.legs[0])


def accounting(sources: TokenSources, prompt_tokens: int, due: int, cached: int) -> Step:
    """Step 1: what decode had it found there, and at least ``due`` tokens came from outside."""
    figures: dict[str, object] = {"prompt_tokens": prompt_tokens, "promised": due, **vars(sources)}
    seen = (
        f"local_cache_hit={sources.local_cache_hit} external={sources.external} "
        f"local_compute={sources.local_compute} of {prompt_tokens} tokens"
    )
    if sources.total != prompt_tokens or min(sources.external, sources.local_compute) < 0:
        summary = f"{seen}: they sum to {sources.total}"
        return _step(Rung.ACCOUNTING, Outcome.BROKEN, summary, figures)
    if sources.local_cache_hit != cached:
        summary = f"{seen}, but {cached} should have been in decode's own cache"
        return _step(Rung.ACCOUNTING, Outcome.BLIND, summary, figures)
    if sources.external < due:
        summary = f"{seen}, but {due} should be external: decode recomputed the rest"
        return _step(Rung.ACCOUNTING, Outcome.RECOMPUTED, summary, figures)
    return _step(Rung.ACCOUNTING, Outcome.HELD, seen, figures)


def control(pair: Pair, ask: Ask, warmth: Warmth) -> Step:
    """Step 5: without the handoff, decode computes all that it did not have."""
    body = ask.body(CONTROL)
    warmth.prepare(body)
    meter = Meter.on(pair.decode)
    answer, _ = pair.decode_leg(ask.endpoint, body)
    sources = TokenSources.of(meter.delta())
    figures: dict[str, object] = {"prompt_tokens": answer.prompt_tokens, **vars(sources)}
    if sources == TokenSources(answer.prompt_tokens - warmth.cached, warmth.cached, 0):
        summary = f"the other {sources.local_compute} tokens computed locally without the handoff"
        return _step(Rung.CONTROL, Outcome.HELD, summary, figures)
    summary = (
        f"{sources} without any handoff, but all except {warmth.cached} should be local_compute: "
        "these counters cannot tell a transfer from none"
    )
    return _step(Rung.CONTROL, Outcome.BLIND, summary, figures)


def _movement(pair: Pair, due: int, look: Callable[[], Step]) -> Step:
    if due:
        return look()
    return excused(Rung.MOVEMENT, f"{pair.profile.title} has nothing left to move")


def _step(name: Rung, outcome: Outcome, summary: str, figures: dict[str, object]) -> Step:
    return Step(name=name, outcome=outcome, summary=summary, figures=figures)
