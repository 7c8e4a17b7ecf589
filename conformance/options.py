"""The options of a run: one typed object, whoever gave them (command line or pytest)."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from conformance.errors import UsageError
from conformance.features import BY_ID
from conformance.models import check_name
from conformance.profile import Profile
from conformance.profile_file import builtin_profiles, load_profile
from conformance.serving.ports import DEFAULT_RANGE, PortRange

FAST_MODEL = {"cpu": "tiny-llama"}
REAL_MODEL = {"cpu": "smollm2-135m-instruct"}
GPU_MODEL = "Qwen/Qwen3-0.6B"


class RunOptions(BaseModel):
    """What to run, on what, and where the results go."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    connectors: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    profiles: tuple[Path, ...] = ()
    model: str | None = None
    real_model: str = Field(default="auto", pattern="^(auto|all|none)$")
    seed: int = 0
    report: Path = Path("reports/runs/latest")
    server_python: str = sys.executable
    server_pythons: dict[str, str] = Field(default_factory=dict)
    keep_going: bool = False
    port_range: str = DEFAULT_RANGE
    start_timeout_s: float = 420.0

    def chosen_profiles(self) -> dict[str, Profile]:
        """The connectors to run, by name: those asked for, else every one known.

        Raises :class:`UsageError` for a name that no profile has.
        """
        known = builtin_profiles()
        own = {profile.name: profile for profile in map(load_profile, self.profiles)}
        known |= own
        if not self.connectors:
            return own or known
        wanted = [*self.connectors, *(name for name in own if name not in self.connectors)]
        for name in wanted:
            if name not in known:
                raise UsageError(_unknown("--connector", name, list(known)))
        return {name: known[name] for name in wanted}

    def model_for(self, kind: str, device: str) -> str:
        """The model that checks of a kind (``fast`` or ``real``) run on."""
        table = FAST_MODEL if kind == "fast" else REAL_MODEL
        return self.model or table.get(device, GPU_MODEL)

    def validated(self) -> RunOptions:
        """Itself, once every name in it is known. Raises :class:`UsageError`."""
        self.chosen_profiles()
        PortRange.parse(self.port_range)
        for feature in self.features:
            if feature not in BY_ID:
                raise UsageError(_unknown("--feature", feature, list(BY_ID)))
        if self.model:
            check_name(self.model)
        return self


def _unknown(option: str, given: str, known: list[str]) -> str:
    near = difflib.get_close_matches(given, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"{option} {given!r} is unknown{hint} Known: {', '.join(sorted(known))}"


def unknown_check(given: str, known: list[str]) -> UsageError:
    """The error for a ``--check`` pattern that matches nothing."""
    return UsageError(_unknown("--check", given, known))
