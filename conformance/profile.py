"""Profiles: one YAML file that says everything the suite must know of a connector."""

from __future__ import annotations

import hashlib
import re
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from conformance.errors import UsageError

PROFILE_FOLDER = Path(__file__).parent / "profiles"
PLACEHOLDER = re.compile(r"\$\{(port|dir):([a-z][a-z0-9_]*)\}")
_ANY_PLACEHOLDER = re.compile(r"\$\{[^}]*\}?")


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Granularity(StrEnum):
    """How much of a prompt of n tokens a healthy transfer covers, with B the block size."""

    TOKEN = "token"  # all n
    BLOCK = "block"  # whole blocks below the last token: floor((n-1)/B)*B

    def promised(self, tokens: int, block_size: int) -> int:
        """Tokens of external KV that decode must be served for a cold prompt.

        The last prompt token's logits are always computed by decode itself, so a block-granular
        connector can serve no block that holds it (vLLM 0.32.0, ``Scheduler.schedule``). A
        prompt of one token is only that last token: NIXL moves its block, and the scheduler
        then sets the computed tokens to n-1 = 0 and counts the prompt as computed locally.
        """
        if self is Granularity.TOKEN:
            return tokens if tokens > 1 else 0
        return max(tokens - 1, 0) // block_size * block_size


class Instance(_Model):
    """What one side of the pair is started with."""

    kv_role: Literal["kv_producer", "kv_consumer", "kv_both"]
    extra_config: dict[str, Any] = Field(default_factory=dict)
    kv_config: dict[str, Any] = Field(default_factory=dict)
    env: dict[str, str] = Field(default_factory=dict)
    args: tuple[str, ...] = ()

    @field_validator("extra_config", "kv_config", "env", "args")
    @classmethod
    def _known_placeholders(cls, value: Any) -> Any:
        for text in _strings(value):
            for found in _ANY_PLACEHOLDER.findall(text):
                if not PLACEHOLDER.fullmatch(found):
                    raise ValueError(
                        f"placeholder {found!r} is unknown; write ${{port:name}} for a leased "
                        "port or ${dir:name} for a folder that P and D share"
                    )
        return value


class Movement(_Model):
    """Where a connector's own record of moved bytes or operations is found.

    ``metric``: a Prometheus sample on ``side``; ``files``: bytes written under ``${dir:NAME}``.
    """

    side: Literal["prefill", "decode"]
    metric: str | None = None
    files: str | None = Field(default=None, validate_default=True)
    unit: str = "bytes"

    @field_validator("files")
    @classmethod
    def _one_of_both(cls, value: str | None, info: Any) -> str | None:
        if (value is None) == (info.data.get("metric") is None):
            raise ValueError("give exactly one of 'metric' and 'files'")
        return value


class Causality(_Model):
    """How the suite makes decode see KV that is not this prompt's.

    ``swap_params``: the handoff of another prompt; ``damage_files``: the stored bytes under
    ``${dir:NAME}`` are permuted before decode reads them.
    """

    method: Literal["swap_params", "damage_files"]
    dir: str | None = None


class Declared(_Model):
    """What the connector's documentation says of one feature, and where it says so."""

    support: Literal["yes", "no", "partly"]
    limit: str | None = None
    source: str | None = None


class Profile(_Model):
    """A connector as the suite knows it."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    title: str
    connector: str
    module_path: str | None = None
    summary: str
    handoff: str
    granularity: Granularity
    prefill: Instance
    decode: Instance
    movement: tuple[Movement, ...] = ()
    causality: Causality
    packages: tuple[str, ...] = ()
    platforms: tuple[Literal["cpu", "cuda", "rocm"], ...]
    real_model: bool = False
    features: dict[str, Declared] = Field(default_factory=dict)
    links: tuple[str, ...] = ()
    path: Path = Path()
    digest: str = ""

    def instance(self, role: Literal["prefill", "decode"]) -> Instance:
        """The side of the pair that a role names."""
        return self.prefill if role == "prefill" else self.decode

    def placeholders(self) -> set[tuple[str, str]]:
        """Every ``(kind, name)`` that needs a lease before a server can start."""
        texts = [
            text
            for side in (self.prefill, self.decode)
            for text in _strings([side.extra_config, side.kv_config, side.env, side.args])
        ]
        return {match for text in texts for match in PLACEHOLDER.findall(text)}


def load_profile(path: Path) -> Profile:
    """Read and check one profile. Raises :class:`UsageError` with file, path and the fix."""
    try:
        raw = path.read_bytes()
        document = yaml.safe_load(raw)
    except FileNotFoundError as problem:
        raise UsageError(
            f"profile {path} does not exist; give the path of a YAML file, such as a copy of "
            f"{PROFILE_FOLDER / 'nixl.yaml'}"
        ) from problem
    except (OSError, yaml.YAMLError) as problem:
        raise UsageError(f"profile {path} is not readable YAML: {problem}") from problem
    if not isinstance(document, dict):
        raise UsageError(f"profile {path}: the document must be a mapping with 'name', 'title', …")
    for internal in ("path", "digest"):
        if internal in document:
            raise UsageError(f"profile {path}: {internal}: the suite fills this in; remove it")
    digest = hashlib.sha256(raw).hexdigest()[:12]
    try:
        profile = Profile.model_validate({**document, "path": path, "digest": digest})
    except ValidationError as problem:
        raise UsageError(f"profile {path} is malformed:\n{_explain(problem)}") from problem
    _check_against_suite(profile)
    return profile


def builtin_profiles() -> dict[str, Profile]:
    """The profiles shipped with the suite, by name."""
    profiles = [load_profile(path) for path in sorted(PROFILE_FOLDER.glob("*.yaml"))]
    return {profile.name: profile for profile in profiles}


def fill(value: Any, leases: dict[tuple[str, str], str]) -> Any:
    """A copy of a config value with each placeholder replaced by its lease.

    A string that is nothing but a port placeholder becomes an integer.
    """
    if isinstance(value, dict):
        return {key: fill(item, leases) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [fill(item, leases) for item in value]
    if not isinstance(value, str):
        return value
    whole = PLACEHOLDER.fullmatch(value)
    if whole and whole[1] == "port":
        return int(leases[whole[1], whole[2]])
    return PLACEHOLDER.sub(lambda found: leases[found[1], found[2]], value)


def _check_against_suite(profile: Profile) -> None:
    from conformance.features import BY_ID
    from conformance.handoff import HANDOFFS

    if profile.handoff not in HANDOFFS:
        known = ", ".join(sorted(HANDOFFS))
        raise UsageError(
            f"profile {profile.path}: handoff: {profile.handoff!r} is unknown; use one of: {known}"
        )
    for feature in profile.features:
        if feature not in BY_ID:
            raise UsageError(
                f"profile {profile.path}: features.{feature}: no such feature; "
                f"use one of: {', '.join(BY_ID)}"
            )
    if profile.causality.method == "damage_files" and not profile.causality.dir:
        raise UsageError(
            f"profile {profile.path}: causality.dir: damage_files needs the folder it damages; "
            "name one of the ${dir:…}"
        )
    named = {f"movement.{number}.files": m.files for number, m in enumerate(profile.movement)}
    for where, name in {**named, "causality.dir": profile.causality.dir}.items():
        if name and not _leased_on_both_sides(profile, name):
            raise UsageError(
                f"profile {profile.path}: {where}: {name!r} names a folder that P and D do not "
                f"share; use ${{dir:{name}}} in prefill.extra_config and decode.extra_config"
            )


def _leased_on_both_sides(profile: Profile, folder: str) -> bool:
    wanted = f"${{dir:{folder}}}"
    return all(
        any(wanted in text for text in _strings([side.extra_config, side.kv_config, side.env]))
        for side in (profile.prefill, profile.decode)
    )


def _explain(problem: ValidationError) -> str:
    lines = []
    for error in problem.errors():
        where = ".".join(str(part) for part in error["loc"]) or "(document)"
        hint = "; remove it or fix the spelling" if error["type"] == "extra_forbidden" else ""
        given = "" if error["type"] == "missing" else f" (given: {error['input']!r})"
        lines.append(f"  {where}: {error['msg']}{given}{hint}")
    return "\n".join(lines)


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in value.values() for text in _strings(item)]
    if isinstance(value, list | tuple):
        return [text for item in value for text in _strings(item)]
    return []
