"""What the connectors of a run say of themselves, put into its report, and the registry gate."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from conformance.errors import SuiteError
from conformance.introspection import ConnectorFacts, Introspection, introspect, target
from conformance.options import RunOptions
from conformance.profile import Profile
from conformance.profile_file import builtin_profiles
from conformance.registry_gate import compare, exemptions
from conformance.report import Report
from conformance.report_parts import RegistryGate
from conformance.serving.engine import Engines, Installation


def describe(
    report: Report,
    profiles: Iterable[Profile],
    engines: Engines,
    options: RunOptions,
    told: Callable[[str], None] = lambda _: None,
) -> None:
    """Fill in what each class says, and compare the registry of the run's engine.

    An engine that cannot be asked is a ``problem`` in both places; the run goes on.
    """
    chosen = {profile.name: profile for profile in profiles}
    asked = _Asked(engines, list(chosen.values()), told)
    for column in report.connectors:
        column.introspected = asked.of(chosen[column.name])
    report.registry = _gate(asked, engines.default, decides=_is_whole(options))


def _is_whole(options: RunOptions) -> bool:
    return not options.connectors and not options.profiles


def _gate(asked: _Asked, engine: Installation, *, decides: bool) -> RegistryGate:
    try:
        found = asked.engine(engine)
        return compare(found, builtin_profiles().values(), exemptions(), decides=decides)
    except SuiteError as problem:
        return RegistryGate(decides=decides, problem=str(problem))


class _Asked:
    """Asks each engine once, for all the classes that run in it."""

    def __init__(
        self, engines: Engines, profiles: list[Profile], told: Callable[[str], None]
    ) -> None:
        self._engines = engines
        self._profiles = profiles
        self._told = told
        self._answers: dict[str, Introspection | SuiteError] = {}

    def engine(self, engine: Installation) -> Introspection:
        """What an engine says. Raises what asking it raised, each time."""
        if engine.python not in self._answers:
            self._answers[engine.python] = self._ask(engine)
        answer = self._answers[engine.python]
        if isinstance(answer, SuiteError):
            raise answer
        return answer

    def of(self, profile: Profile) -> dict[str, Any]:
        """What the class of a profile says; ``problem`` where it says nothing."""
        try:
            found = self.engine(self._engines.of(profile))
        except SuiteError as problem:
            return {"problem": str(problem)}
        facts = found.of(profile.connector, profile.module_path)
        if facts is None:
            return {"problem": f"vLLM {found.vllm} registers no {profile.connector}"}
        return _as_reported(facts, found, profile)

    def _ask(self, engine: Installation) -> Introspection | SuiteError:
        mine = [profile for profile in self._profiles if self._runs_in(profile, engine)]
        families = [part for profile in mine for part in (profile, *profile.parts)]
        targets = {target(p.module_path, p.connector): None for p in families if p.module_path}
        folders: dict[Path, None] = {f: None for p in mine for f in p.python_folders()}
        try:
            path = list(folders) if targets else []
            return introspect(engine, list(targets), path, self._told)
        except SuiteError as problem:
            return problem

    def _runs_in(self, profile: Profile, engine: Installation) -> bool:
        try:
            return self._engines.of(profile).python == engine.python
        except SuiteError:
            return False


def _as_reported(facts: ConnectorFacts, found: Introspection, profile: Profile) -> dict[str, Any]:
    said = facts.model_dump(mode="json", exclude={"name", "registered"}, exclude_none=True)
    children = [found.of(part.connector, part.module_path) for part in profile.parts]
    if children and said.get("hma"):
        # vLLM 0.32.0 asks every child of a MultiConnector (KVConnectorFactory.supports_hma_config).
        said["hma"] = all(child is not None and child.hma for child in children)
    return said
