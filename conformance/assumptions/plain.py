"""The server without a connector that assumptions are tried on, and what it was asked so far.

Several assumptions look at one request, so each is sent once, when it is first looked at.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from conformance.answer import Answer, Transcript
from conformance.bodies import chat, completion
from conformance.client import Body, Client, Endpoint, Rejected
from conformance.endpoints import REQUEST_ID, path_of
from conformance.errors import NotHere
from conformance.metrics import Counters, Meter, TokenSources
from conformance.prompts import Prompts

# So many tokens are answered where more than one is needed.
SOME = 6
# A prompt of so many is not cached: no block is as small.
FEW = 5
# The id that one request is given.
REQUEST = "kvc-assumptions"
NOT_OFFERED = (403, 404, 405)

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Asked:
    """A request that was answered, and what the counters say of it."""

    body: Body
    answer: Answer
    delta: Counters

    @property
    def ids(self) -> list[int]:
        """The prompt that was sent, where it was sent as token ids."""
        return list(self.body["prompt"])

    @property
    def sources(self) -> TokenSources:
        """Where its prompt tokens came from."""
        return TokenSources.of(self.delta)


@dataclass
class Plain:
    """The server. ``ours``: nobody else talks to it; ``started``: with the suite's options."""

    client: Client
    prompts: Prompts
    ours: bool = True
    started: bool = True
    _seen: dict[str, object] = field(default_factory=dict)

    @property
    def block(self) -> int:
        """Tokens per KV block."""
        return self.client.server.block_size

    def ids(self, length: int, *key: object) -> list[int]:
        """A prompt of its own."""
        return self.prompts.tokens(length, "assumptions", *key)

    def once(self, name: str, make: Callable[[], _Found]) -> _Found:
        """What ``make`` gave the first time, or raised: what failed is not tried again."""
        if name not in self._seen:
            try:
                self._seen[name] = make()
            except Exception as problem:
                self._seen[name] = problem
        found = self._seen[name]
        if isinstance(found, Exception):
            raise found
        return found  # type: ignore[return-value]

    def metered(self, body: Body, endpoint: Endpoint = "completions") -> Asked:
        """A request with the counters around it."""
        meter = Meter.on(self.client)
        answer = self.client.ask(endpoint, body)
        return Asked(body, answer, meter.delta())

    def offered(self, endpoint: Endpoint, body: Body) -> Answer:
        """An answer of an endpoint that a server may have been started without.

        Raises :class:`NotHere` where it was.
        """
        try:
            return self.client.ask(endpoint, body)
        except Rejected as problem:
            if problem.status in NOT_OFFERED:
                raise NotHere(f"{path_of(endpoint)} is not offered: {problem}") from problem
            raise

    @property
    def first(self) -> Answer:
        """A completion of a short prompt."""
        body = completion(self.ids(FEW, "first"), SOME, ignore_eos=True)
        return self.once("first", lambda: self.client.ask("completions", body))

    @property
    def cold(self) -> Asked:
        """A prompt of two blocks and a token that the server never saw."""
        body = completion(self.ids(2 * self.block + 1, "cold"), SOME, ignore_eos=True)
        return self.once("cold", lambda: self.metered(body))

    @property
    def again(self) -> Asked:
        """The same request once more."""
        return self.once("again", lambda: self.metered(self.cold.body))

    @property
    def blocks(self) -> Asked:
        """Its first two blocks and nothing else, for one token."""
        body = completion(self.cold.ids[: 2 * self.block], 1)
        return self.once("blocks", lambda: self.metered(body))

    @property
    def salted(self) -> Asked:
        """The prompt that is known by then, under a ``cache_salt``."""
        body = {**completion(self.cold.ids, 1), "cache_salt": uuid.uuid4().hex}
        return self.once("salted", lambda: self.metered(body))

    @property
    def several(self) -> Asked:
        """Two prompts in one request, with two sampled choices of each."""
        self.again  # noqa: B018 (what one request counts is known first)
        prompts = [self.ids(FEW, "first of two"), self.ids(FEW + 2, "second of two")]
        body = {**completion([1], 2, n=2, temperature=1.0), "prompt": prompts}
        return self.once("several", lambda: self.metered(body))

    @property
    def stopped(self) -> Asked:
        """The known prompt, with a token of its answer to stop at."""
        body = {**self.cold.body, "stop_token_ids": [self.cold.answer.token_ids[SOME // 2]]}
        return self.once("stopped", lambda: self.metered(body))

    @property
    def chat(self) -> Answer:
        """A chat of one message, under a request id of ours."""
        headers = {REQUEST_ID: REQUEST}
        return self.once(
            "chat", lambda: self.client.ask("chat/completions", self.chat_body, headers)
        )

    @property
    def chat_body(self) -> Body:
        """What is asked in that chat."""
        return chat(self.prompts.text(20, "assumptions", "chat"), SOME, ignore_eos=True)

    @property
    def streamed(self) -> Transcript:
        """The known prompt's completion, streamed."""
        return self.once("streamed", lambda: self.client.stream("completions", self.cold.body))

    @property
    def streamed_chat(self) -> Transcript:
        """The chat, streamed, with usage in every chunk."""
        options = {"include_usage": True, "continuous_usage_stats": True}
        body = {**self.chat_body, "stream_options": options}
        return self.once("streamed chat", lambda: self.client.stream("chat/completions", body))
