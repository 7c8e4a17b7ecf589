"""A prefill/decode pair and its reference, as a check talks to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from conformance.answer import Answer, Transcript
from conformance.client import Body, Client, Endpoint
from conformance.errors import CheckFailed, ReferenceFailed
from conformance.handoff import Handoff, Params
from conformance.metrics import Counters, Meter
from conformance.models import Model
from conformance.profile import Profile
from conformance.prompts import Prompts

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
    handoff: Handoff
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

    def prefill_leg(self, endpoint: Endpoint, body: Body) -> tuple[Answer, Params | None]:
        """The first leg, and the params for the second. Raises :class:`HandoffBroken`."""
        answer = self.prefill.ask(endpoint, self.prefill_body(endpoint, body))
        return answer, self.handoff.decode_params(answer.kv_transfer_params)

    def prefill_body(self, endpoint: Endpoint, body: Body) -> Body:
        """A client's request as a router would send it to P: one token, once, not streamed."""
        one = {key: value for key, value in body.items() if key not in _NOT_FOR_PREFILL}
        one |= {"max_tokens": 1, "n": 1, "stream": False}
        if endpoint == "chat/completions":
            one["max_completion_tokens"] = 1
        return with_params(one, self.handoff.prefill_params())

    def decode_leg(
        self, endpoint: Endpoint, body: Body, params: Params | None, *, stream: bool = False
    ) -> tuple[Answer, Transcript | None]:
        """The second leg, streamed or not."""
        whole = with_params(body, params)
        if not stream:
            return self.decode.ask(endpoint, unstreamed(whole)), None
        transcript = self.decode.stream(endpoint, whole)
        return transcript.answer(), transcript

    def both_legs(self, ask: Ask, body: Body) -> Legs:
        """One request as a router sends it: to P, then with the handoff to D."""
        first, params = self.prefill_leg(ask.endpoint, body)
        if ask.reuse_ids:
            params = with_ids(params, first.prompt_token_ids)
        second, transcript = self.decode_leg(ask.endpoint, body, params, stream=ask.stream)
        return Legs(first, second, transcript)

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
            on_prefill.delta(self._metric("prefill")),
            on_decode.delta(self._metric("decode")),
        )

    def _metric(self, side: str) -> str | None:
        return next((m.metric for m in self.profile.movement if m.side == side and m.metric), None)

    def stored_files(self, folder: str) -> dict[Path, int]:
        """Files under a shared folder of the profile, with their sizes in bytes."""
        root = self.folders[folder]
        return {path: path.stat().st_size for path in root.rglob("*") if path.is_file()}


def with_params(body: Body, params: Params | None) -> Body:
    """The body with ``kv_transfer_params``, where there are any."""
    return {**body, "kv_transfer_params": params} if params else dict(body)


def unstreamed(body: Body) -> Body:
    """The body without what is an error in a request that does not stream."""
    return {key: value for key, value in body.items() if key not in ("stream", "stream_options")}


def with_ids(params: Params | None, ids: Sequence[int]) -> Params:
    """The params with the token ids that decode is to continue from."""
    return {**(params or {}), "prompt_token_ids": list(ids)}


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
