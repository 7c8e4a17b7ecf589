"""Damages stored KV by a command of the profile's, for stores that have an interface of their own.

The command is run with ``mark`` before the prefill leg and with ``damage`` after it. The second
prints one JSON object, ``{"damaged": N}``: how many pieces that were new since the mark were put
back with their elements in another order.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence

from conformance.errors import EnvironmentProblem

LIMIT_S = 60.0


class CommandDamage:
    """Runs the command; its environment is the prefill instance's."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        self._command = list(command)
        self._env = {**os.environ, **env}

    def mark(self) -> None:
        """Let the command remember what is stored."""
        self._run("mark")

    def apply(self) -> int:
        """Let it damage what is new; how many pieces it says that were."""
        said = self._run("damage")
        try:
            return int(json.loads(said.strip().splitlines()[-1])["damaged"])
        except (ValueError, LookupError, TypeError) as problem:
            raise EnvironmentProblem(
                f"{self._shown('damage')} printed {said[-200:]!r}, but should end with "
                '{"damaged": N}'
            ) from problem

    def _run(self, what: str) -> str:
        try:
            done = subprocess.run(
                [*self._command, what],
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                env=self._env,
                check=True,
            )
        except (OSError, subprocess.SubprocessError) as problem:
            detail = getattr(problem, "stderr", "") or str(problem)
            raise EnvironmentProblem(f"{self._shown(what)} failed: {detail[-500:]}") from problem
        return done.stdout

    def _shown(self, what: str) -> str:
        return f"causality.command {' '.join(self._command)} {what}"
