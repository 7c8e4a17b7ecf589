"""The servers of a run: one deployment and its reference at a time, started again when lost.

Never two pairs at once: idle NIXL workers spin at 100 %, and two cores hold one pair.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from conformance.answer import Answer
from conformance.client import Client
from conformance.clock import RunClock
from conformance.crashes import CrashLedger
from conformance.errors import ServerStartError, SuiteError
from conformance.handoffs import Place, handoff_named
from conformance.models import Model
from conformance.options import RunOptions
from conformance.oracle import Reference, must_be_sensitive
from conformance.pair import Pair
from conformance.profile import Profile
from conformance.prompts import Prompts
from conformance.serving.command import TOKEN_BUDGET
from conformance.serving.deployment import PAIR, TRIAL, Deployment, Key, ReferenceKey, Shape
from conformance.serving.launcher import Launcher
from conformance.serving.server import Server

START_FAILURES_ENOUGH = 2


@dataclass
class _Running:
    """A reference that runs."""

    key: ReferenceKey
    deployment: Deployment
    oracle: Reference
    prompts: Prompts


class Fleet:
    """Hands out pairs. Everything it started ends with :meth:`close`."""

    def __init__(
        self, options: RunOptions, launcher: Launcher, clock: RunClock, ledger: CrashLedger
    ) -> None:
        self._options = options
        self._launcher = launcher
        self._clock = clock
        self._ledger = ledger
        self._models: dict[str, Model] = {}
        self._reference: _Running | None = None
        # By how a reference is started: with other options it may answer otherwise.
        self._remembered: dict[ReferenceKey, dict[str, Answer]] = {}
        self._pairs: list[Pair] = []
        self._clients: list[Client] = []
        self._deployment: Deployment | None = None
        self._failures: dict[Key, list[Exception]] = {}
        self._was_up: set[Key] = set()
        # Hears of every reference before its first answer is used; what it raises ends the start.
        self.on_reference: Callable[[Client, Prompts, ReferenceKey], None] = lambda *_: None

    def pairs(self, profile: Profile, model_name: str, shape: Shape = PAIR) -> list[Pair]:
        """Every prefill/decode pair of a deployment, running; the ordinary shape has one.

        The deployment before is stopped. One that lost a process is started again as a whole.
        One that failed to start twice is not tried again; its error is raised each time.
        """
        key = Key(profile.name, model_name, shape)
        if not self._is_up(key):
            # Before a model is built: idle NIXL servers would take both cores from the build.
            self._stop_deployment()
            self._drop_reference(unless=key.reference)
            self._start(profile, self._model(model_name), key)
        assert self._pairs
        return self._pairs

    def was_up(self, profile: Profile, model_name: str, shape: Shape = PAIR) -> bool:
        """Whether such a pair of this connector has been ready before in this run."""
        return Key(profile.name, model_name, shape) in self._was_up

    def trial(self, profile: Profile, model_name: str, shape: Shape = TRIAL) -> None:
        """Start one prefill server and stop it. Raises :class:`ServerStartError`."""
        key = Key(profile.name, model_name, shape)
        failures = self._failures.setdefault(key, [])
        if failures:
            raise failures[-1]
        self._stop_deployment()
        try:
            deployment, _ = self._launcher.launch(
                self._model(model_name), profile, shape, and_reference=False
            )
        except SuiteError as problem:
            failures.append(problem)
            raise
        with self._clock.span("startup"):
            deployment.stop()

    def refused_before(self, profile: Profile, model_name: str) -> ServerStartError | None:
        """How a connector's ordinary servers failed to start, if they never did."""
        if self.was_up(profile, model_name):
            return None
        tried = (Key(profile.name, model_name, shape) for shape in (TRIAL, PAIR))
        failures = [problem for key in tried for problem in self._failures.get(key, ())]
        return next((f for f in failures if isinstance(f, ServerStartError)), None)

    def reference(self, model_name: str, shape: Shape) -> None:
        """Start a reference alone, unless it is up. Raises :class:`ServerStartError`.

        One that failed is not tried again; its error is raised each time.
        """
        key = Key(None, model_name, shape)
        failures = self._failures.setdefault(key, [])
        if failures:
            raise failures[-1]
        if self._reference_is_up(key.reference):
            return
        self._stop_deployment()
        self._drop_reference()
        model = self._model(model_name)
        try:
            self._welcome(self._launcher.launch_reference(model, shape), key.reference, model)
        except SuiteError as problem:
            failures.append(problem)
            self._drop_reference()
            raise

    def _is_up(self, key: Key) -> bool:
        if self._deployment is None or self._deployment.key != key:
            return False
        return self._deployment.alive and self._reference_is_up(key.reference)

    def _reference_is_up(self, key: ReferenceKey) -> bool:
        found = self._reference
        return found is not None and found.key == key and found.deployment.alive

    def drop(self) -> None:
        """Stop the deployment that runs; the next pair that is asked for is a fresh one."""
        self._stop_deployment()

    def close(self) -> None:
        """Stop everything."""
        with self._clock.span("startup"):
            self._stop_deployment()
            self._drop_reference()

    def _model(self, name: str) -> Model:
        if name not in self._models:
            self._models[name] = self._launcher.model(name)
        return self._models[name]

    def _start(self, profile: Profile, model: Model, key: Key) -> None:
        unservable = self._failures.get(Key(None, key.model, key.shape))
        if unservable:
            raise unservable[-1]
        failures = self._failures.setdefault(key, [])
        if len(failures) >= START_FAILURES_ENOUGH or (failures and key not in self._was_up):
            raise failures[-1]
        try:
            self._start_fresh(profile, model, key)
        except ServerStartError as problem:
            failures.append(problem)
            raise
        except Exception as problem:  # all servers are up, and useless
            failures += [problem] * START_FAILURES_ENOUGH
            self._stop_deployment()
            self._drop_reference()
            raise
        self._was_up.add(key)

    def _start_fresh(self, profile: Profile, model: Model, key: Key) -> None:
        alone = not self._reference_is_up(key.reference)
        if alone:
            self._drop_reference()
        self._deployment, fresh = self._launcher.launch(
            model, profile, key.shape, and_reference=alone
        )
        if fresh:
            self._welcome(fresh, key.reference, model)
        self._assemble(profile, model, self._deployment)

    def _welcome(self, fresh: Deployment, key: ReferenceKey, model: Model) -> None:
        client = self._client(fresh.key, fresh.references[0])
        oracle = Reference(client, self._remembered.setdefault(key, {}))
        prompts = Prompts(client, self._options.seed)
        self._reference = _Running(key, fresh, oracle, prompts)
        self.on_reference(client, prompts, key)
        must_be_sensitive(Reference(client), prompts, model.name, model.dtype)

    def _drop_reference(self, unless: ReferenceKey | None = None) -> None:
        found = self._reference
        if found is None or found.key == unless:
            return
        self._reference = None
        with self._clock.span("startup"):
            found.oracle.client.close()
            found.deployment.stop()

    def _assemble(self, profile: Profile, model: Model, deployment: Deployment) -> None:
        """A pair for each prefill instance with each decode instance, over shared clients."""
        reference = self._reference
        assert reference is not None
        clients = {server: self._client(deployment.key, server) for server in deployment.servers}
        self._clients = list(clients.values())
        self._pairs = [
            Pair(
                profile=profile,
                handoff=handoff_named(profile.handoff, profile.python_folders()),
                place=Place(p.url, d.url, ports=deployment.ports_of(p, d)),
                model=model,
                prefill=clients[p],
                decode=clients[d],
                oracle=reference.oracle,
                prompts=reference.prompts,
                folders=deployment.folders,
                token_budget=TOKEN_BUDGET,
                damage=deployment.damage,
                damage_of_child=deployment.damage_of_child,
            )
            for p in deployment.prefills
            for d in deployment.decodes
        ]

    def _client(self, key: Key, server: Server) -> Client:
        limit_s = self._options.answer_limit_s
        return Client(server, self._clock, self._ledger, key.label, answer_limit_s=limit_s)

    def _stop_deployment(self) -> None:
        for client in self._clients:
            client.close()
        if self._deployment:
            with self._clock.span("startup"):
                self._deployment.stop()
        self._deployment, self._clients, self._pairs = None, [], []
