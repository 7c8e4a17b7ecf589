"""The options of a run: one typed object, whoever gave them (command line or pytest)."""

from __future__ import annotations

import difflib
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from conformance.attachment import Attachment
from conformance.deadline import ANSWER_LIMIT_S, START_LIMIT_S
from conformance.errors import UsageError
from conformance.features import BY_ID
from conformance.models import check_name
from conformance.profile import Profile
from conformance.profile_file import builtin_profiles, load_profile
from conformance.serving.ports import DEFAULT_RANGE, PortRange

Level = Literal["core", "extended", "provisional"]
LEVELS: tuple[Level, ...] = get_args(Level)
FAST_MODEL = {"cpu": "tiny-llama"}
REAL_MODEL = {"cpu": "smollm2-135m-instruct"}
GPU_MODEL = "Qwen/Qwen3-0.6B"


class RunOptions(BaseModel):
    """What to run, on what, and where the results go."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    connectors: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    levels: tuple[Level, ...] = ()
    profiles: tuple[Path, ...] = ()
    model: str | None = None
    real_model: str = Field(default="auto", pattern="^(auto|all|none)$")
    seed: int = 0
    report: Path = Path("reports/runs/latest")
    server_python: str = sys.executable
    server_pythons: dict[str, str] = Field(default_factory=dict)
    keep_going: bool = False
    port_range: str = DEFAULT_RANGE
    start_timeout_s: float = START_LIMIT_S
    answer_limit_s: float = Field(default=ANSWER_LIMIT_S, gt=0)
    attachment: Attachment | None = None
    expectations: Path | None = None

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
        """The model that checks of a kind run on: ``fast``, ``real``, or a recipe of their own.

        A check with its own model is about that model, so none that is asked for replaces it.
        """
        if kind not in ("fast", "real"):
            return kind
        table = FAST_MODEL if kind == "fast" else REAL_MODEL
        return self.model or table.get(device, GPU_MODEL)

    @classmethod
    def of(cls, *, server_python: Sequence[str] = (), **given: Any) -> RunOptions:
        """From what a person gave. Raises :class:`UsageError`.

        ``server_python``: interpreters as ``PATH``, or ``CONNECTOR=PATH`` for one connector.
        ``seed``: 0 if none is given, and another each time on a pair that runs already.
        """
        named = dict(item.split("=", 1) for item in server_python if "=" in item)
        plain = [item for item in server_python if "=" not in item]
        if len(plain) > 1:
            raise UsageError(
                f"--server-python: {plain} names more than one interpreter for all connectors; "
                "write CONNECTOR=PATH for those that need their own"
            )
        if plain:
            given["server_python"] = plain[0]
        if given.get("seed") is None:
            # Prompts that a running pair has seen before are in its caches.
            given["seed"] = secrets.randbelow(10**9) if given.get("attachment") else 0
        for level in given.get("levels", ()):
            if level not in LEVELS:
                raise UsageError(_unknown("--level", level, list(LEVELS)))
        try:
            return cls(server_pythons=named, **given).validated()
        except ValidationError as problem:
            raise UsageError(str(problem)) from problem

    def validated(self) -> RunOptions:
        """Itself, once every name in it is known. Raises :class:`UsageError`."""
        chosen = self.chosen_profiles()
        for name in self.server_pythons:
            if name not in chosen:
                raise UsageError(_unknown("--server-python", name, list(chosen)))
        PortRange.parse(self.port_range)
        for feature in self.features:
            if feature not in BY_ID:
                raise UsageError(_unknown("--feature", feature, list(BY_ID)))
        if self.attachment is not None:
            self._must_fit_one_pair(chosen)
        elif self.model:
            check_name(self.model)
        return self

    def _must_fit_one_pair(self, chosen: dict[str, Profile]) -> None:
        if len(chosen) != 1:
            raise UsageError(
                f"--prefill-url and --decode-url are one pair, and {len(chosen)} connectors are "
                "chosen: say which one it runs, with --connector NAME or --profile FILE"
            )
        if self.server_pythons:
            raise UsageError("--server-python starts servers, and the URLs are of running ones")


def _unknown(option: str, given: str, known: list[str]) -> str:
    near = difflib.get_close_matches(given, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"{option} {given!r} is unknown{hint} Known: {', '.join(sorted(known))}"


def unknown_check(given: str, known: list[str]) -> UsageError:
    """The error for a ``--check`` pattern that matches nothing."""
    return UsageError(_unknown("--check", given, known))
