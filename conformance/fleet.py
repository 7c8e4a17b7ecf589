"""The servers of a run: one pair at a time, one reference per model, started again when lost.

Never two pairs at once: idle NIXL workers spin at 100 %, and two cores hold one pair.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from conformance.answer import Answer
from conformance.client import Client
from conformance.clock import RunClock
from conformance.crashes import CrashLedger
from conformance.errors import CheckFailed, ReferenceFailed, ServerStartError, SuiteError
from conformance.handoff import handoff_named
from conformance.models import Model
from conformance.options import RunOptions
from conformance.pair import Pair, completion
from conformance.parity import compare
from conformance.profile import Profile
from conformance.prompts import Prompts
from conformance.serving.deployment import TOKEN_BUDGET, Deployment, Key, Launcher

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
        self._failures: dict[Key, list[SuiteError]] = {}

    def pair(self, profile: Profile, model_name: str) -> Pair:
        """The pair of a connector and a model, running.

        The one before is stopped. One that lost a server is started again as a whole. A pair
        that failed to start twice is not tried again; its error is raised each time.
        """
        key = Key(profile.name, model_name)
        if not self._is_up(key):
            # Before a model is built: idle NIXL servers would take both cores from the build.
            self._stop_pair()
            self._drop_other_references(model_name)
            self._start(profile, self._model(model_name), key)
        assert self._current is not None
        return self._current

    def _is_up(self, key: Key) -> bool:
        reference = self._references.get(key.model)
        if self._deployment is None or reference is None or self._deployment.key != key:
            return False
        return self._deployment.alive and reference.deployment.alive

    def close(self) -> None:
        """Stop everything."""
        with self._clock.span("startup"):
            self._stop_pair()
            self._drop_other_references("")

    def _model(self, name: str) -> Model:
        if name not in self._models:
            self._models[name] = self._launcher.model(name)
        return self._models[name]

    def _start(self, profile: Profile, model: Model, key: Key) -> None:
        failures = self._failures.setdefault(key, [])
        if len(failures) >= START_FAILURES_ENOUGH:
            raise failures[-1]
        try:
            self._start_fresh(profile, model)
        except ServerStartError as problem:
            failures.append(problem)
            raise
        except SuiteError as problem:  # all servers are up, and useless
            failures += [problem] * START_FAILURES_ENOUGH
            self._stop_pair()
            self._drop_other_references("")
            raise

    def _start_fresh(self, profile: Profile, model: Model) -> None:
        known = self._references.get(model.name)
        alone = known is None or not known.deployment.alive
        if known and alone:
            self._drop_reference(model.name)
        self._deployment, fresh = self._launcher.launch(model, profile, and_reference=alone)
        if fresh:
            remembered = known.remembered if known else {}
            client = self._client(fresh, "reference")
            prompts = Prompts(client, self._options.seed)
            self._references[model.name] = _Reference(fresh, client, prompts, remembered)
            _must_be_sensitive(client, prompts, model)
        assert self._deployment is not None
        self._current = self._assemble(profile, model, self._deployment)

    def _drop_other_references(self, model_name: str) -> None:
        for name in [name for name in self._references if name != model_name]:
            self._drop_reference(name)

    def _drop_reference(self, model_name: str) -> None:
        reference = self._references.pop(model_name)
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
    try:
        one, other = (
            client.ask("completions", completion(prompts.tokens(40, "sensitivity", arm), 4))
            for arm in (1, 2)
        )
    except CheckFailed as problem:
        raise ReferenceFailed(f"the reference cannot answer: {problem}") from problem
    if compare(one, other, model.dtype).equal:
        raise SuiteError(
            f"model {model.name} gives the same answer to different prompts, so no answer can "
            "prove anything: choose another with --model"
        )
