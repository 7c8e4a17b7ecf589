"""The servers of a run: one pair at a time, one reference per model, started again when lost."""

from __future__ import annotations

from dataclasses import dataclass, field

from conformance.answer import Answer
from conformance.client import Client
from conformance.clock import RunClock
from conformance.crashes import CrashLedger
from conformance.errors import ServerStartError, SuiteError
from conformance.handoff import handoff_named
from conformance.models import Model
from conformance.options import RunOptions
from conformance.pair import Pair, completion
from conformance.parity import compare
from conformance.profile import Profile
from conformance.prompts import Prompts
from conformance.serving.deployment import TOKEN_BUDGET, Deployment, Key, Launcher

# Idle NIXL workers spin at 100 %, and two cores hold one pair: never more than one at a time.
START_FAILURES_ENOUGH = 2


@dataclass
class _Reference:
    deployment: Deployment
    client: Client
    prompts: Prompts
    remembered: dict[str, Answer] = field(default_factory=dict)


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
        self._references: dict[str, _Reference] = {}
        self._current: Pair | None = None
        self._deployment: Deployment | None = None
        self._failures: dict[Key, list[ServerStartError]] = {}

    def pair(self, profile: Profile, model_name: str) -> Pair:
        """The pair of a connector and a model, running.

        The one before is stopped. One that lost a server is started again as a whole. A pair
        that failed to start twice is not tried again; its error is raised each time.
        """
        model = self._model(model_name)
        key = Key(profile.name, model.name)
        if not (
            self._current
            and self._deployment
            and self._deployment.key == key
            and self._deployment.alive
        ):
            self._stop_pair()
            self._start(profile, model, key)
        assert self._current is not None
        return self._current

    def lost_server(self) -> bool:
        """Whether the current pair lost one of its servers."""
        return self._deployment is not None and not self._deployment.alive

    def close(self) -> None:
        """Stop everything."""
        with self._clock.span("startup"):
            self._stop_pair()
            for reference in self._references.values():
                reference.client.close()
                reference.deployment.stop()
            self._references.clear()

    def _model(self, name: str) -> Model:
        if name not in self._models:
            self._models[name] = self._launcher.model(name)
        return self._models[name]

    def _start(self, profile: Profile, model: Model, key: Key) -> None:
        failures = self._failures.setdefault(key, [])
        if len(failures) >= START_FAILURES_ENOUGH:
            raise failures[-1]
        self._drop_other_references(model)
        reference = self._references.get(model.name)
        alone = reference is None or not reference.deployment.alive
        try:
            pair, fresh = self._launcher.launch(model, profile, and_reference=alone)
        except ServerStartError as problem:
            failures.append(problem)
            raise
        assert pair is not None
        if fresh:
            self._references[model.name] = self._meet_reference(model, fresh, reference)
        self._deployment = pair
        self._current = self._assemble(profile, model, pair)

    def _meet_reference(
        self, model: Model, fresh: Deployment, lost: _Reference | None
    ) -> _Reference:
        client = self._client(fresh, "reference")
        found = _Reference(fresh, client, Prompts(client, self._options.seed))
        if lost:
            found.remembered = lost.remembered
        _must_be_sensitive(client, found.prompts, model)
        return found

    def _drop_other_references(self, model: Model) -> None:
        for name in [name for name in self._references if name != model.name]:
            reference = self._references.pop(name)
            with self._clock.span("startup"):
                reference.client.close()
                reference.deployment.stop()

    def _assemble(self, profile: Profile, model: Model, pair: Deployment) -> Pair:
        reference = self._references[model.name]
        return Pair(
            profile=profile,
            handoff=handoff_named(profile.handoff),
            model=model,
            prefill=self._client(pair, "prefill"),
            decode=self._client(pair, "decode"),
            reference=reference.client,
            prompts=reference.prompts,
            folders=pair.folders,
            token_budget=TOKEN_BUDGET,
            remembered=reference.remembered,
        )

    def _client(self, deployment: Deployment, role: str) -> Client:
        server = deployment.servers[role]
        return Client(server, self._clock, self._ledger, deployment.key.label)

    def _stop_pair(self) -> None:
        if self._current:
            self._current.prefill.close()
            self._current.decode.close()
        if self._deployment:
            with self._clock.span("startup"):
                self._deployment.stop()
        self._current = self._deployment = None


def _must_be_sensitive(client: Client, prompts: Prompts, model: Model) -> None:
    """A model that answers alike whatever it is asked can prove nothing."""
    one, other = (
        client.ask("completions", completion(prompts.tokens(40, "sensitivity", arm), 4))
        for arm in (1, 2)
    )
    if compare(one, other, model.dtype).equal:
        raise SuiteError(
            f"model {model.name} gives the same answer to different prompts, so no answer can "
            "prove anything: choose another with --model"
        )
