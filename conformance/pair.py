"""A prefill/decode pair and its reference, as a check talks to them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from conformance.answer import Answer, Transcript
from conformance.client import Body, Client, Endpoint
from conformance.errors import CheckFailed, ReferenceFailed
from conformance.handoffs import NOTHING, Handed, Handoff, Maker, Place
from conformance.metrics import Counters, Meter
from conformance.models import Model
from conformance.profile import Profile
from conformance.prompts import Prompts
from conformance.stores import Stores

# A prefill leg asks for one token and must not carry what contradicts that, or what only makes
# sense for the answer the client sees.
_NOT_FOR_PREFILL = ("min_tokens", "min_completion_tokens", "stream_options", "stream", "n")


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
    """Requests through the pair, and what the counters of both sides say of them."""

    legs: list[Legs]
    prefill_delta: Counters
    decode_delta: Counters


@dataclass
class Pair:
    """Prefill, decode and reference server of one deployment."""

    profile: Profile
    handoff: Maker
    place: Place
    model: Model
    prefill: Client
    decode: Client
    reference: Client
    prompts: Prompts
    folders: dict[str, Path]
    token_budget: int
    remembered: dict[str, Answer]

    @property
    def block_size(self) -> int:
        """Tokens per KV block on decode, as read from the server."""
        return self.decode.server.block_size

    def clients(self) -> tuple[Client, Client, Client]:
        """All three."""
        return self.prefill, self.decode, self.reference

    def expected(self, endpoint: Endpoint, body: Body) -> Answer:
        """The reference's unstreamed answer; asked once per run, since it is greedy and seeded.

        Raises :class:`ReferenceFailed`: without an oracle nothing can be said of a connector.
        """
        body = unstreamed(body)
        key = repr((endpoint, sorted(body.items(), key=lambda item: item[0])))
        if key not in self.remembered:
            try:
                self.remembered[key] = self.reference.ask(endpoint, body)
            except CheckFailed as problem:
                raise ReferenceFailed(f"no answer to compare with: {problem}") from problem
        return self.remembered[key]

    def prefill_leg(self, endpoint: Endpoint, body: Body) -> tuple[Answer, Handed]:
        """The first leg, and what the second is given. Raises :class:`HandoffBroken`.

        Returns once the KV can be read, where the profile says how that shows.
        """
        way = self.handoff(self.place)
        stored = self._stores()
        answer = self._ask_prefill(way, endpoint, body)
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
        return transcript.answer(), transcript

    def both_legs(self, ask: Ask, body: Body) -> Legs:
        """One request as a router sends it: to P, then with the handoff to D."""
        if not ask.reuse_ids and (ask.at_once or self.handoff(self.place).at_once):
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
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(self._ask_prefill, way, ask.endpoint, body)
            second, transcript = self.decode_leg(ask.endpoint, body, handed, stream=ask.stream)
            return Legs(first.result(), second, transcript)

    def _ask_prefill(self, way: Handoff, endpoint: Endpoint, body: Body) -> Answer:
        whole = Handed(way.prefill_params()).into(prefill_body(endpoint, body))
        return self.prefill.ask(endpoint, whole, way.headers())

    def _stores(self) -> Stores | None:
        settle = self.profile.settle
        if settle is None:
            return None
        client = self.prefill if settle.side == "prefill" else self.decode
        return Stores.on(client, settle)

    def _promised(self, answer: Answer) -> int:
        return self.profile.granularity.promised(answer.prompt_tokens, self.block_size)

    def exchange(self, ask: Ask, *bodies: Body) -> Exchange:
        """Requests through the pair, all at once, with both servers' counters around them."""
        on_prefill = Meter.on(self.prefill)
        on_decode = Meter.on(self.decode)
        if len(bodies) == 1:
            legs = [self.both_legs(ask, bodies[0])]
        else:
            with ThreadPoolExecutor(len(bodies)) as pool:
                legs = list(pool.map(lambda body: self.both_legs(ask, body), bodies))
        return Exchange(
            legs,
            on_prefill.delta(*self._metrics("prefill")),
            on_decode.delta(*self._metrics("decode")),
        )

    def _metrics(self, side: str) -> list[str]:
        return [m.metric for m in self.profile.movement if m.side == side and m.metric]

    def stored_files(self, folder: str) -> dict[Path, int]:
        """Files under a shared folder of the profile, with their sizes in bytes."""
        root = self.folders[folder]
        return {path: path.stat().st_size for path in root.rglob("*") if path.is_file()}


def prefill_body(endpoint: Endpoint, body: Body) -> Body:
    """A client's request as a router would send it to P: one token, once, not streamed."""
    one = {key: value for key, value in body.items() if key not in _NOT_FOR_PREFILL}
    one |= {"max_tokens": 1, "n": 1, "stream": False}
    if endpoint == "chat/completions":
        one["max_completion_tokens"] = 1
    return one


def unstreamed(body: Body) -> Body:
    """The body without what is an error in a request that does not stream."""
    return {key: value for key, value in body.items() if key not in ("stream", "stream_options")}


def greedy(**fields: Any) -> Body:
    """Fields every compared request shares: greedy, seeded, ids and log-probabilities back."""
    return {
        "temperature": 0.0,
        "seed": 0,
        "return_token_ids": True,
        "return_tokens_as_token_ids": True,
        **fields,
    }


def completion(prompt: list[int] | str, max_tokens: int = 12, **fields: Any) -> Body:
    """A ``/v1/completions`` body that can be compared."""
    return greedy(prompt=prompt, max_tokens=max_tokens, logprobs=2, **fields)


def chat(content: str, max_tokens: int = 12, **fields: Any) -> Body:
    """A ``/v1/chat/completions`` body of one user message that can be compared."""
    messages = [{"role": "user", "content": content}]
    return greedy(messages=messages, max_tokens=max_tokens, logprobs=True, top_logprobs=2, **fields)
