"""A connector that vLLM registers and nobody wrote a profile for makes a whole run red.

So a new connector, or a renamed one, cannot stay untested unnoticed. What is not a
prefill/decode connector is exempt, with a reason and a link, in ``registry_exemptions.yaml``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import yaml
from packaging.version import InvalidVersion, Version
from pydantic import TypeAdapter, ValidationError

from conformance.errors import UsageError
from conformance.introspection import Introspection
from conformance.profile import Profile
from conformance.report_parts import Exemption, RegistryGate
from conformance.verdict import ExitCode

EXEMPTIONS = Path(__file__).parent / "registry_exemptions.yaml"


def exemptions(file: Path = EXEMPTIONS) -> dict[str, Exemption]:
    """The exemptions, by registered name. Raises :class:`UsageError`."""
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
        return TypeAdapter(dict[str, Exemption]).validate_python(document)
    except (OSError, yaml.YAMLError, ValidationError) as problem:
        raise UsageError(
            f"{file}: {problem}; each entry is a registered name with reason, link and seen_in"
        ) from problem


def compare(
    found: Introspection,
    profiles: Iterable[Profile],
    exempt: Mapping[str, Exemption],
    *,
    decides: bool,
) -> RegistryGate:
    """The engine's registry against profiles and exemptions.

    A profile stands for every name of its class: vLLM 0.32.0 registers NixlPullConnector also
    as NixlConnector.
    """
    by_class = _profiles_by_name(found, profiles)
    names = list(found.registered())
    return RegistryGate(
        decides=decides,
        vllm=found.vllm,
        platform=found.platform,
        registered=names,
        profiles=by_class,
        exempt={name: why for name, why in exempt.items() if name in names},
        missing=[name for name in names if name not in by_class and name not in exempt],
        stale=dict(_stale(found, by_class, exempt)),
    )


def _profiles_by_name(found: Introspection, profiles: Iterable[Profile]) -> dict[str, list[str]]:
    ours = [(p.name, p.connector) for p in profiles if p.module_path is None]
    registered = found.registered()
    by_class: dict[str, list[str]] = {}
    for name, facts in registered.items():
        for profile, connector in ours:
            if connector in registered and registered[connector].identity == facts.identity:
                by_class.setdefault(name, []).append(profile)
    return by_class


def _stale(
    found: Introspection, by_class: Mapping[str, list[str]], exempt: Mapping[str, Exemption]
) -> Iterator[tuple[str, str]]:
    for name, why in exempt.items():
        if name in by_class:
            yield name, f"has a profile now: {', '.join(by_class[name])}"
        elif name not in found.registered() and not _older(found.vllm, why.seen_in):
            yield name, f"vLLM {found.vllm} does not register it"


def _older(version: str, than: str) -> bool:
    try:
        return Version(version) < Version(than)
    except InvalidVersion:  # a build from source calls itself "dev"
        return False


def words(gate: RegistryGate | None) -> list[str]:
    """What is wrong, and the fix, one line each; nothing where the gate does not decide."""
    if gate is None or not gate.decides:
        return []
    told = [f"the engine's registry could not be compared: {gate.problem}"] if gate.problem else []
    told += [
        f"vLLM {gate.vllm} registers {name}, which has neither a profile nor an exemption: write "
        f"one (kv-conformance init-profile {name}), or exempt it in {EXEMPTIONS.name}"
        for name in gate.missing
    ]
    return told + [
        f"the exemption of {name} is stale: {why}; remove it from {EXEMPTIONS.name}"
        for name, why in gate.stale.items()
    ]


def gated(code: ExitCode, gate: RegistryGate | None) -> ExitCode:
    """The exit code of a run that ended with ``code``, once the gate has had its say."""
    if gate is None or not gate.decides or code is ExitCode.INTERRUPTED:
        return code
    if gate.missing or gate.stale:
        return ExitCode.NOT_CONFORMANT
    unread = gate.problem is not None and code in (ExitCode.CONFORMANT, ExitCode.NOTHING_RAN)
    return ExitCode.HARNESS if unread else code
