"""Who says what the right answer is: a reference server, or decode itself without the handoff."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace
from typing import Protocol

from conformance.answer import Answer
from conformance.bodies import completion
from conformance.client import Body, Client, Endpoint
from conformance.endpoints import requests_in
from conformance.errors import CheckFailed, NotHere, ReferenceFailed, SuiteError
from conformance.metrics import Meter, TokenSources
from conformance.parity import compare
from conformance.prompts import Prompts

GIVE_REFERENCE = "give a server of the same model without a connector with --reference-url"
ALONE = "decode itself, without the handoff and with a fresh cache_salt"


class Oracle(Protocol):
    """Gives the answer that a pair's has to equal."""

    @property
    def clients(self) -> tuple[Client, ...]:
        """Servers that nobody else talks to."""

    def expected(self, endpoint: Endpoint, body: Body) -> Answer:
        """The unstreamed answer; asked once per run, since it is greedy and seeded.

        Raises :class:`ReferenceFailed`: without an oracle nothing can be said of a connector.
        """


@dataclass
class Reference:
    """A server of the same model without a connector. ``remembered`` outlives the server."""

    client: Client
    remembered: dict[str, Answer] = field(default_factory=dict)

    @property
    def clients(self) -> tuple[Client, ...]:
        return (self.client,)

    def expected(self, endpoint: Endpoint, body: Body) -> Answer:
        key = key_of(endpoint, body)
        if key not in self.remembered:
            try:
                self.remembered[key] = self.client.ask(endpoint, body)
            except CheckFailed as problem:
                raise ReferenceFailed(f"no answer to compare with: {problem}") from problem
        return self.remembered[key]


@dataclass
class DecodeAlone:
    """The decode instance, asked for the same without the handoff.

    The salt keeps its prefix cache and every store that is keyed by block hashes from answering
    (vLLM 0.32.0, ``kv_cache_utils.py``); its counters then have to say that it computed all of
    the prompt, else its answer is no oracle's. ``store_may_answer``: it was found to compute what
    nobody has stored, so if it does not compute something now, that is a store's doing.
    """

    decode: Client
    remembered: dict[str, Answer] = field(default_factory=dict)
    clients: tuple[Client, ...] = ()
    store_may_answer: bool = False

    def expected(self, endpoint: Endpoint, body: Body) -> Answer:
        key = key_of(endpoint, body)
        if key not in self.remembered:
            self.remembered[key] = self._computed(endpoint, body)
        return self.remembered[key]

    def must_be_alone(self, prompts: Prompts) -> None:
        """Raises :class:`ReferenceFailed` if decode finds what only decode itself has computed.

        Then asking it for the right answer would leave KV in a store that answers the request
        which is to be proven, as a connector does that writes on D and whose keys ignore the
        salt (ExampleConnector as ``kv_both``, vLLM 0.32.0).
        """
        length = 2 * self.decode.server.block_size + 1
        body = completion(prompts.tokens(length, "alone"), 1)
        self.expected("completions", body)
        meter = Meter.on(self.decode)
        self.decode.ask("completions", body)
        found = TokenSources.of(meter.delta()).external
        if found:
            raise ReferenceFailed(
                f"decode stores what it computes and finds it again whatever the cache_salt "
                f"({found} tokens), so it cannot say what the right answer is; {GIVE_REFERENCE}"
            )

    def _computed(self, endpoint: Endpoint, body: Body) -> Answer:
        meter = Meter.on(self.decode)
        try:
            answer = self.decode.ask(endpoint, {**body, "cache_salt": uuid.uuid4().hex})
        except CheckFailed as problem:
            raise ReferenceFailed(f"no answer to compare with: {problem}") from problem
        sources = TokenSources.of(meter.delta())
        if sources.external and self.store_may_answer:
            raise NotHere(
                f"the right answer is not known: a store answers for {sources.external} tokens "
                f"that decode should compute, whatever the cache_salt; {GIVE_REFERENCE}"
            )
        if not _by_itself(sources, answer, requests_in(endpoint, body)):
            raise ReferenceFailed(
                f"decode, asked without any handoff, computed {sources.local_compute} of "
                f"{answer.prompt_tokens} prompt tokens itself (external_kv_transfer="
                f"{sources.external}, local_cache_hit={sources.local_cache_hit}): a store answers, "
                "or its counters claim what never came. Its answer is no oracle's; "
                f"{GIVE_REFERENCE}"
            )
        return replace(answer, given_by=ALONE)


def _by_itself(sources: TokenSources, answer: Answer, requests: int) -> bool:
    """Whether decode computed the prompt; of several requests the later find the first's blocks.

    How many beam search makes of one is not known (see ``Client``), so more is no contradiction.
    """
    if requests == 1 and not sources.local_cache_hit:
        return sources.local_compute == answer.prompt_tokens
    return not sources.external and sources.local_compute >= answer.prompt_tokens


def must_be_sensitive(oracle: Oracle, prompts: Prompts, model: str, dtype: str) -> None:
    """A model that answers alike whatever it is asked can prove nothing.

    Raises :class:`SuiteError`, and :class:`ReferenceFailed` when the oracle does not answer.
    """
    one, other = (
        oracle.expected("completions", completion(prompts.tokens(40, "sensitivity", arm), 4))
        for arm in (1, 2)
    )
    if compare(one, other, dtype).equal:
        raise SuiteError(
            f"model {model} gives the same answer to different prompts, so no answer can prove "
            "anything: choose another with --model"
        )


def key_of(endpoint: Endpoint, body: Body) -> str:
    """Names a request by all that it asks."""
    return repr((endpoint, sorted(body.items(), key=lambda item: item[0])))
