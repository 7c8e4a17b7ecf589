"""A prefill/decode pair and its oracle, as a check talks to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from conformance.answer import Answer, Transcript, spelled_as
from conformance.bodies import (
    chat,
    completion,
    greedy,
    prefill_body,
    told_by_token,
    unstreamed,
)
from conformance.client import Body, Client, Endpoint
from conformance.damage import Damage
from conformance.handoffs import NOTHING, Handed, Handoff, Maker, Place
from conformance.metrics import Counters, Meter, TokenSources
from conformance.models import Model
from conformance.oracle import Oracle
from conformance.profile import Profile
from conformance.prompts import Prompts
from conformance.stores import Stores

__all__ = ["Ask", "Exchange", "Legs", "Pair", "chat", "completion", "greedy", "unstreamed"]


@dataclass(frozen=True)
class Ask:
    """A request in as many variants as proof needs: same shape, different prompts.

    ``body`` makes variant 0, 1, 2, …; a proof uses a fresh one for each arm, because a prompt
    that was used is in a prefix cache.
    """

    subject: str
    endpoint: Endpoint
    body: Callable[[int], Body]
    stream: bool = False
    reuse_ids: bool = False
    at_once: bool = False

    def streamed(self) -> Ask:
        """The same ask, with the decode leg streamed."""
        return replace(self, stream=True, subject=f"{self.subject}, streamed")


@dataclass(frozen=True)
class Legs:
    """The answers of both legs of one request."""

    prefill: Answer
    decode: Answer
    transcript: Transcript | None = None


@dataclass(frozen=True)
class Exchange:
    """Requests through the pair, and what the counters of both sides say of them.

    ``alone``: answers to what decode was asked meanwhile, without any handoff.
    """

    legs: list[Legs]
    prefill_delta: Counters
    decode_delta: Counters
    alone: list[Answer] = field(default_factory=list)


@dataclass
class Pair:
    """One prefill and one decode instance, and who says what they should answer.

    ``folders``: the profile's shared folders that are within reach, by name. ``token_budget``:
    tokens that one scheduler step may compute, where that is known. ``damage``: what reaches the
    connector's store between the legs, where its profile says how.
    """

    profile: Profile
    handoff: Maker
    place: Place
    model: Model
    prefill: Client
    decode: Client
    oracle: Oracle
    prompts: Prompts
    folders: dict[str, Path]
    token_budget: int | None
    damage: Damage | None = field(default=None, kw_only=True)
    damage_of_child: dict[str, Damage | None] = field(default_factory=dict, kw_only=True)

    @property
    def block_size(self) -> int:
        """Tokens per KV block on decode, as read from the server."""
        return self.decode.server.block_size

    @property
    def no_swap(self) -> str | None:
        """Why decode cannot be given another prompt's handoff; ``None`` where it can."""
        return None

    @property
    def hears_prefill(self) -> bool:
        """Whether what P answered is seen, and not a router's answer alone."""
        return True

    def clients(self) -> tuple[Client, ...]:
        """Everybody that is talked to."""
        return self.prefill, self.decode, *self.oracle.clients

    def expected(self, endpoint: Endpoint, body: Body) -> Answer:
        """The oracle's answer. Raises :class:`ReferenceFailed`."""
        answer = self.oracle.expected(endpoint, unstreamed(body))
        if not answer.text_only:
            return answer
        return spelled_as(answer, self.oracle.expected("chat/completions", told_by_token(body)))

    def prefill_leg(
        self, endpoint: Endpoint, body: Body, ids: Sequence[int] = ()
    ) -> tuple[Answer, Handed]:
        """The first leg, and what the second is given. Raises :class:`HandoffBroken`.

        Returns once the KV can be read, where the profile says how that shows. ``ids``: P is
        to prefill these instead of the chat's messages.
        """
        way = self.handoff(self.place)
        stored = self._stores()
        answer = self._ask_prefill(way, endpoint, body, ids)
        if stored is not None and self._promised(answer):
            stored.wait()
        return answer, way.handed(answer.kv_transfer_params)

    def decode_leg(
        self, endpoint: Endpoint, body: Body, handed: Handed = NOTHING, *, stream: bool = False
    ) -> tuple[Answer, Transcript | None]:
        """The second leg, streamed or not."""
        whole = handed.into(body)
        if not stream:
            return self.decode.ask(endpoint, unstreamed(whole), handed.headers), None
        transcript = self.decode.stream(endpoint, whole, handed.headers)
        transcript.must_be_whole()
        return transcript.answer(), transcript

    def both_legs(self, ask: Ask, body: Body) -> Legs:
        """One request as a router sends it: to P, then with the handoff to D."""
        if self.handoff(self.place).at_once or (ask.at_once and not ask.reuse_ids):
            return self._legs_at_once(ask, body)
        first, handed = self.prefill_leg(ask.endpoint, body)
        if ask.reuse_ids:
            handed = handed.with_ids(first.prompt_token_ids)
        second, transcript = self.decode_leg(ask.endpoint, body, handed, stream=ask.stream)
        return Legs(first, second, transcript)

    def _legs_at_once(self, ask: Ask, body: Body) -> Legs:
        """Both legs on their way together; decode waits for the KV by itself."""
        way = self.handoff(self.place)
        handed = way.handed(None)
        if ask.reuse_ids:  # P has not answered yet, so they come from who knows what P will say
            handed = handed.with_ids(self.expected(ask.endpoint, body).prompt_token_ids)
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(self._ask_prefill, way, ask.endpoint, body)
            second, transcript = self.decode_leg(ask.endpoint, body, handed, stream=ask.stream)
            return Legs(first.result(), second, transcript)

    def _ask_prefill(
        self, way: Handoff, endpoint: Endpoint, body: Body, ids: Sequence[int] = ()
    ) -> Answer:
        asked = Handed(way.prefill_params())
        asked = asked.with_ids(ids) if ids else asked
        whole = asked.into(prefill_body(endpoint, body))
        return self.prefill.ask(endpoint, whole, way.headers())

    def _stores(self) -> Stores | None:
        settle = self.profile.settle
        if settle is None:
            return None
        client = self.prefill if settle.side == "prefill" else self.decode
        return Stores.on(client, settle)

    def _promised(self, answer: Answer) -> int:
        return self.profile.granularity.promised(answer.prompt_tokens, self.block_size)

    def exchange(
        self,
        ask: Ask,
        *bodies: Body,
        alone: Sequence[Body] = (),
        ahead: Sequence[Body] = (),
    ) -> Exchange:
        """Requests through the pair, all at once, with both servers' counters around them.

        ``alone``: asked of decode at the same time, without a handoff. ``ahead``: asked of prefill
        first, without a handoff; what comes while it computes them waits, and goes together.
        """
        on_prefill = Meter.on(self.prefill)
        on_decode = Meter.on(self.decode)
        if len(bodies) == 1 and not alone and not ahead:
            legs, computed = [self.both_legs(ask, bodies[0])], []
        else:
            with ThreadPoolExecutor(len(bodies) + len(alone) + len(ahead)) as pool:
                first = [pool.submit(self.prefill.ask, ask.endpoint, body) for body in ahead]
                asked = [pool.submit(self.decode.ask, ask.endpoint, body) for body in alone]
                legs = list(pool.map(lambda body: self.both_legs(ask, body), bodies))
                computed = [answer.result() for answer in asked]
                for answer in first:
                    answer.result()
        came = on_decode.delta()
        # A record that is late is waited for; where nothing came, there is none.
        late = bool(TokenSources.of(came).external)
        return Exchange(
            legs,
            on_prefill.delta(*(self._metrics("prefill") if late else ())),
            on_decode.delta(*self._metrics("decode")) if late else came,
            computed,
        )

    def _metrics(self, side: str) -> list[str]:
        return [m.metric for m in self.profile.movement if m.side == side and m.metric]

    def stored_files(self, folder: str) -> dict[Path, int]:
        """Files under a shared folder of the profile, with their sizes in bytes."""
        root = self.folders[folder]
        return {path: path.stat().st_size for path in root.rglob("*") if path.is_file()}
