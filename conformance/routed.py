"""A pair behind a router: the router makes both legs, the servers' own counters say what came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from conformance.client import Body, Client
from conformance.endpoints import requests_in
from conformance.errors import NotHere, Unsettled
from conformance.pair import Ask, Exchange, Legs, Pair

NO_SWAP = (
    "the router makes both legs, so decode cannot be given another prompt's handoff; leave "
    "--router-url out to try that on the pair itself"
)
NO_IDS = (
    "the router makes the decode request, so token ids cannot be put into it; leave --router-url "
    "out to try that on the pair itself"
)


@dataclass
class RoutedPair(Pair):
    """Requests go to ``router``; the control and single legs still go to the servers."""

    router: Client

    @property
    def no_swap(self) -> str | None:
        return NO_SWAP

    @property
    def hears_prefill(self) -> bool:
        return False

    def clients(self) -> tuple[Client, ...]:
        return self.router, *super().clients()

    def both_legs(self, ask: Ask, body: Body) -> Legs:
        """One request to the router. Its answer is the only one there is, and stands for both.

        Raises :class:`NotHere` for what a router leaves no room for.
        """
        if ask.reuse_ids:
            raise NotHere(NO_IDS)
        servers = (self.prefill, self.decode)
        try:
            if ask.stream:
                transcript = self.router.stream(ask.endpoint, body)
                transcript.must_be_whole()
                legs = Legs(transcript.answer(), transcript.answer(), transcript)
            else:
                answer = self.router.ask(ask.endpoint, body)
                legs = Legs(answer, answer)
        except BaseException:
            for server in servers:  # nobody knows how far it got
                server.uncertain = True
            raise
        for server in servers:
            server.count(requests_in(ask.endpoint, body))
        return legs

    def exchange(
        self,
        ask: Ask,
        *bodies: Body,
        alone: Sequence[Body] = (),
        ahead: Sequence[Body] = (),
    ) -> Exchange:
        """As a pair's. Raises :class:`Unsettled` when the router asked somebody else."""
        try:
            return super().exchange(ask, *bodies, alone=alone, ahead=ahead)
        except Unsettled as problem:
            raise Unsettled(
                f"{problem}: the router answered, but did not ask both --prefill-url "
                f"{self.place.prefill_url} and --decode-url {self.place.decode_url}; give it "
                "these two and no others, and switch its own retries and test requests off"
            ) from problem
