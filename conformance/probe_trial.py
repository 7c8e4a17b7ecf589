"""The requests of one probe, and what they showed.

Decode must not have seen the prompt that is transferred, in whatever way: so whether it can be
its own oracle is found out first, with another prompt.
"""

from __future__ import annotations

from dataclasses import replace

from conformance.answer import Answer
from conformance.assumed import assumed_profile, handoff_of, with_exported_records
from conformance.attached_fleet import AttachedFleet
from conformance.bodies import completion
from conformance.causality import VARIANT, causality
from conformance.direction import external_from_decode, may_be_swapped
from conformance.errors import (
    CheckFailed,
    ForeignTraffic,
    HandoffBroken,
    ReferenceFailed,
    Unsettled,
)
from conformance.hello import must_be_quiet, say_hello
from conformance.ladder import PROVEN, accounting, control, movement, parity
from conformance.metrics import FINISHED, TokenSources
from conformance.oracle import DecodeAlone
from conformance.pair import Ask, Exchange, Pair
from conformance.parity import compare
from conformance.profile import Profile
from conformance.seen import Seen

MAX_TOKENS = 6


class Trial:
    """One probe while it goes on; everything that it finds goes into ``seen``.

    ``handoff`` and ``why``: how the legs are joined, and who said so.
    """

    def __init__(
        self, seen: Seen, known: Profile | None, handoff: str | None, tokens: int | None
    ) -> None:
        self.seen = seen
        self._known = known
        self._tokens = tokens
        self._detect = known is None and handoff is None
        self.handoff = known.handoff if known else handoff or "none"
        self.why = "not looked at" if self._detect else "as asked"

    def run(self, fleet: AttachedFleet, model: str) -> None:
        """Until something makes the rest worthless, or to the end."""
        seen = self.seen
        try:
            must_be_quiet(fleet.prefill, fleet.decode)
            pair = fleet.pair(self._profile(fleet), model)
            if not seen.one_server:
                self._climb(pair, usable=self._oracle_is_usable(fleet))
        except ForeignTraffic as problem:
            seen.traffic = str(problem)
        except Unsettled as problem:
            seen.unsettled = str(problem)
        except (CheckFailed, ReferenceFailed) as problem:
            seen.refused = str(problem)

    def _profile(self, fleet: AttachedFleet) -> Profile:
        """The one that was named, else what P's answer to a first request implies."""
        hello = say_hello(fleet, detect=self._detect)
        self.seen.one_server = hello.one_server
        self.seen.prefill_delta = hello.prefill_delta
        if self._detect:
            self.handoff, self.why = handoff_of(hello.returned)
        return self._known or assumed_profile(self.handoff, fleet.prefill.counters())

    def _oracle_is_usable(self, fleet: AttachedFleet) -> bool:
        if isinstance(fleet.oracle, DecodeAlone):
            try:
                fleet.oracle.must_be_alone(fleet.prompts)
            except ReferenceFailed as problem:
                self.seen.no_oracle = str(problem)
        return not self.seen.no_oracle

    def _climb(self, pair: Pair, *, usable: bool) -> None:
        ask = self._ask(pair)
        expected = pair.expected(ask.endpoint, ask.body(PROVEN)) if usable else None
        exchange = self._exchange(pair, ask)
        if exchange is None or not self.seen.external:
            return self._other_way(pair, exchange)
        if self._known is None:
            deltas = exchange.prefill_delta, exchange.decode_delta
            pair = replace(pair, profile=with_exported_records(pair.profile, *deltas))
        steps = self.seen.steps
        steps.append(movement(pair, exchange, 0, self.seen.promised))
        if expected is not None:
            self._compare(pair, ask, expected, exchange.legs[0].decode)
        steps.append(control(pair, ask))
        return None

    def _exchange(self, pair: Pair, ask: Ask) -> Exchange | None:
        """The transfer itself and its accounting; ``None`` if P handed nothing over."""
        seen = self.seen
        before = _finished(pair)
        try:
            exchange = pair.exchange(ask, ask.body(PROVEN))
        except HandoffBroken as problem:
            seen.no_params = str(problem)
            return None
        except Unsettled:
            now = _finished(pair)
            seen.asked = (now[0] > before[0], now[1] > before[1])
            raise
        seen.prefill_delta, seen.decode_delta = exchange.prefill_delta, exchange.decode_delta
        seen.prompt_tokens = exchange.legs[0].decode.prompt_tokens
        seen.promised = pair.profile.granularity.promised(seen.prompt_tokens, pair.block_size)
        sources = TokenSources.of(exchange.decode_delta)
        seen.steps.append(accounting(sources, seen.prompt_tokens, seen.promised))
        return exchange

    def _compare(self, pair: Pair, ask: Ask, expected: Answer, answer: Answer) -> None:
        self.seen.steps.append(causality(pair, ask, self.seen.promised))
        self.seen.steps.append(parity(expected, answer, pair.model.dtype))
        other = pair.expected(ask.endpoint, ask.body(VARIANT))
        self.seen.insensitive = compare(expected, other, pair.model.dtype).equal

    def _other_way(self, pair: Pair, exchange: Exchange | None) -> None:
        """Nothing came: perhaps the two are just in each other's place."""
        if not self.seen.routed and may_be_swapped(exchange):
            self.seen.reverse_external = external_from_decode(pair)

    def _ask(self, pair: Pair) -> Ask:
        length = self._tokens or self._few_blocks(pair.block_size)
        return Ask(
            f"completion of {length} tokens",
            "completions",
            lambda variant: completion(pair.prompts.tokens(length, "probe", variant), MAX_TOKENS),
        )

    def _few_blocks(self, block: int) -> int:
        """Two and a half, or what the shorter of both servers takes."""
        both = (self.seen.prefill, self.seen.decode)
        longest = min(facts.max_model_len or 10**9 for facts in both)
        return max(1, min(2 * block + block // 2, longest - MAX_TOKENS - 1))


def _finished(pair: Pair) -> tuple[float, float]:
    """Requests that each side has counted as finished."""
    prefill, decode = (client.counters().total(FINISHED) for client in (pair.prefill, pair.decode))
    return prefill, decode
