"""Sections of ``report.json`` that say how names and declarations stand against what was seen."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Exemption(_Model):
    """Why a registered connector needs no profile, where that can be read, and the first known
    vLLM version that registers it.
    """

    reason: str = Field(min_length=20)
    link: str = Field(pattern=r"^https://")
    seen_in: str


class RegistryGate(_Model):
    """The engine's registry against the profiles.

    ``decides``: the run was one of all connectors, so this decides its exit code. ``profiles``:
    by registered class, the profiles that name it; ``missing``: registered, with neither profile
    nor exemption; ``stale``: exemptions that no longer say anything, with the reason;
    ``problem``: why the registry could not be read.
    """

    decides: bool
    vllm: str | None = None
    platform: str | None = None
    registered: list[str] = Field(default_factory=list)
    profiles: dict[str, list[str]] = Field(default_factory=dict)
    exempt: dict[str, Exemption] = Field(default_factory=dict)
    missing: list[str] = Field(default_factory=list)
    stale: dict[str, str] = Field(default_factory=dict)
    problem: str | None = None


class Contradiction(_Model):
    """Something a profile or a documentation page says, and what was seen instead.

    ``kind`` and ``name``: which feature, platform or capability; ``source``: where it is declared.
    """

    connector: str
    kind: Literal["feature", "platform", "capability"]
    name: str
    declared: str
    observed: str
    source: str
