"""Hands out the one pair that somebody else started; starts nothing and stops nothing."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from conformance.attachment import Attachment
from conformance.client import Client
from conformance.clock import RunClock
from conformance.crashes import CrashLedger
from conformance.deadline import ANSWER_LIMIT_S
from conformance.developer import budget_of, dtype_of
from conformance.direction import must_not_be_swapped
from conformance.errors import EnvironmentProblem, NotHere, ServerStartError, SuiteError
from conformance.handoffs import Place, handoff_named
from conformance.models import Model
from conformance.oracle import DecodeAlone, Oracle, Reference, must_be_sensitive
from conformance.pair import Pair
from conformance.profile import Profile
from conformance.prompts import Prompts
from conformance.routed import RoutedPair
from conformance.serving.attached import AttachedServer, ServerFacts
from conformance.serving.deployment import PAIR, TRIAL, Shape
from conformance.serving.served import ServerRole
from conformance.serving.standing import Standing


class AttachedFleet:
    """What :class:`Fleet` is for servers of ours. ``seed``: prompts depend on it alone."""

    def __init__(
        self,
        attachment: Attachment,
        standing: Standing,
        seed: int,
        clock: RunClock,
        ledger: CrashLedger,
        answer_limit_s: float = ANSWER_LIMIT_S,
    ) -> None:
        self._answer_limit_s = answer_limit_s
        self._attachment = attachment
        self._standing = standing
        self._clock = clock
        self._ledger = ledger
        self._clients: list[Client] = []
        self.prefill = self._client("prefill", standing.prefill)
        self.decode = self._client("decode", standing.decode)
        self.oracle = self._oracle()
        self.prompts = Prompts(self.decode, seed)
        self._pairs: dict[str, Pair | SuiteError] = {}
        # Hears of the reference, if there is one, before its first answer is used.
        self.on_reference: Callable[[Client, Prompts], None] = lambda *_: None

    def pairs(self, profile: Profile, model_name: str, shape: Shape = PAIR) -> list[Pair]:
        """The pair, as a connector's; found to face the right way, with a model that can prove.

        Raises :class:`NotHere` for any other topology, and what was found wrong each time.
        """
        if shape != PAIR:
            raise _needs_a_start(shape)
        if model_name != self._standing.model:
            raise NotHere(
                f"needs model {model_name}, and this pair serves {self._standing.model}; leave the "
                "URLs out to let the suite start servers of its own"
            )
        self._must_be_alive()
        if profile.name not in self._pairs:
            self._pairs[profile.name] = self._tried(profile, model_name)
        found = self._pairs[profile.name]
        if isinstance(found, SuiteError):
            raise found
        return [found]

    def was_up(
        self,
        profile: Profile,  # noqa: ARG002
        model_name: str,  # noqa: ARG002
        shape: Shape = PAIR,  # noqa: ARG002
    ) -> bool:
        """Always: it was up before this run."""
        return True

    def refused_before(
        self,
        profile: Profile,  # noqa: ARG002
        model_name: str,  # noqa: ARG002
    ) -> ServerStartError | None:
        """Never: it was up before this run."""
        return None

    def reference(self, model_name: str, shape: Shape) -> None:
        """Nothing to start: there is one, or decode stands in for it."""

    def trial(
        self,
        profile: Profile,  # noqa: ARG002
        model_name: str,  # noqa: ARG002
        shape: Shape = TRIAL,
    ) -> None:
        """Nothing to try: it was started by somebody else. :class:`NotHere` for a check's own."""
        if shape != TRIAL:
            raise _needs_a_start(shape)

    def drop(self) -> None:
        """Somebody else's servers stay."""

    def close(self) -> None:
        """Drop the connections; the servers stay."""
        for client in self._clients:
            client.close()

    def pair(self, profile: Profile, model_name: str) -> Pair:
        """The pair as a connector's, not yet looked at."""
        url = self._attachment.prefill_url
        fields = {
            "profile": profile,
            "handoff": handoff_named(profile.handoff, profile.python_folders()),
            "place": Place(
                url,
                self._attachment.decode_url,
                host=urlsplit(url).hostname or "",
                ports=self._attachment.handoff_ports,
            ),
            "model": Model(model_name, model_name, dtype_of(self.decode)),
            "prefill": self.prefill,
            "decode": self.decode,
            "oracle": self.oracle,
            "prompts": self.prompts,
            "folders": {},
            "token_budget": budget_of(self.prefill),
        }
        if self._attachment.router_url is None:
            return Pair(**fields)  # type: ignore[arg-type]
        return RoutedPair(**fields, router=self._router())  # type: ignore[arg-type]

    def _tried(self, profile: Profile, model_name: str) -> Pair | SuiteError:
        pair = self.pair(profile, model_name)
        try:
            if isinstance(self.oracle, Reference):
                self.on_reference(self.oracle.client, self.prompts)
            if not isinstance(pair, RoutedPair):  # a router decides by itself which is which
                must_not_be_swapped(pair)
            if isinstance(self.oracle, DecodeAlone):
                self.oracle.must_be_alone(self.prompts)
                self.oracle.store_may_answer = profile.handoff == "none"
            must_be_sensitive(self.oracle, self.prompts, model_name, pair.model.dtype)
        except SuiteError as problem:
            return problem
        return pair

    def _must_be_alive(self) -> None:
        for client in self._clients:
            server = client.server
            if not server.alive and not server.healthy():
                raise EnvironmentProblem(
                    f"{server.url} stopped answering, and the suite did not start it, so it "
                    "cannot start it again"
                )

    def _oracle(self) -> Oracle:
        if self._standing.reference is None:
            return DecodeAlone(self.decode)
        return Reference(self._client("reference", self._standing.reference))

    def _router(self) -> Client:
        url = self._attachment.router_url or ""
        return self._client("router", ServerFacts(url, (), None, "", 0, counts=False))

    def _client(self, role: ServerRole, facts: ServerFacts) -> Client:
        own, agreed = facts.models, self._standing.model
        server = AttachedServer(
            role,
            agreed if agreed in own or not own else own[0],
            facts.url,
            facts.block_size,
            self._attachment.request_headers(),
        )
        made = Client(
            server,
            self._clock,
            self._ledger,
            f"{facts.url} × {server.model}",
            answer_limit_s=self._answer_limit_s,
        )
        self._clients.append(made)
        return made


def _needs_a_start(shape: Shape) -> NotHere:
    return NotHere(
        f"needs servers started anew ({shape.label}), and this pair was running already; "
        "leave the URLs out to let the suite start them"
    )
