"""What connector classes say of themselves, asked of an engine's own Python and remembered.

The suite never imports vLLM: ``serving/introspect.py`` does, in a child process (10 to 15 s on
an idle machine). The answer is kept in the cache folder, and asked anew once the engine's
version, a package or a file that was read has changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from conformance.data import cache
from conformance.errors import EnvironmentProblem
from conformance.serving.engine import Installation
from conformance.serving.rootcause import without_install_paths

SCRIPT = Path(__file__).parent / "serving" / "introspect.py"
SOURCES = (SCRIPT, SCRIPT.with_name("introspect_source.py"))
# Importing vLLM took 75 s where four servers were starting on two cores.
LIMIT_S = 300
_QUIET = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "VLLM_HOST_IP": "127.0.0.1"}
_STDERR_LINES = 5


class ConnectorFacts(BaseModel):
    """One class. ``problem``: why it could not be loaded; then the rest is unknown.

    ``takes_kv_cache_config``: has the three-argument constructor; ``abstract_left``: methods
    without which it cannot be made; ``overrides``: hooks of the base class that it replaces;
    ``returns_params``: whether its prefill answer carries params, with their names, as far as
    its source tells; ``kv_cache_layout`` and ``piecewise_cudagraph``: its answer where it can be
    asked without a running engine.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    registered: bool
    module: str | None = None
    problem: str | None = None
    defined_in: str | None = None
    class_name: str | None = None
    constructor: tuple[str, ...] = ()
    takes_kv_cache_config: bool | None = None
    abstract_left: tuple[str, ...] = ()
    hma: bool | None = None
    kv_cache_layout: str | None = None
    piecewise_cudagraph: bool | str | None = None
    prom_metrics: bool | None = None
    stats: bool | None = None
    overrides: tuple[str, ...] = ()
    returns_params: bool | None = None
    params: tuple[str, ...] = ()

    @property
    def identity(self) -> tuple[str | None, str]:
        """The same for every name under which one class is registered."""
        return self.defined_in or self.module, self.class_name or self.name


class Introspection(BaseModel):
    """One engine: its version, its platform's own name, its registry and the classes asked for.

    ``files``: what was read, with modification time (ns) and size (bytes).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    vllm: str
    platform: str | None = None
    platform_problem: str | None = None
    connectors: tuple[ConnectorFacts, ...] = ()
    files: dict[str, tuple[int, int]] = Field(default_factory=dict)

    def registered(self) -> dict[str, ConnectorFacts]:
        """The engine's own registry, by name."""
        return {facts.name: facts for facts in self.connectors if facts.registered}

    def of(self, name: str, module: str | None = None) -> ConnectorFacts | None:
        """A class by its registered name, or by name and ``kv_connector_module_path``."""
        if module is None:
            return self.registered().get(name)
        given = [facts for facts in self.connectors if not facts.registered]
        return next((f for f in given if (f.name, f.module) == (name, module)), None)


def target(module: str, name: str) -> str:
    """How a class outside the registry is asked for."""
    return f"{module}:{name}"


def introspect(
    engine: Installation,
    targets: Sequence[str] = (),
    folders: Sequence[Path] = (),
    told: Callable[[str], None] = lambda _: None,
) -> Introspection:
    """Ask an engine, or remember what it said. Raises :class:`EnvironmentProblem`.

    ``targets``: classes as :func:`target` writes them; ``folders``: added to ``PYTHONPATH``;
    ``told``: hears that this will take a while.
    """
    file = cache() / "introspection" / f"{_key(engine, targets, folders)}.json"
    known = _remembered(file)
    if known:
        return known
    told(f"asking vLLM {engine.version} about its connectors (once, about 15 s)")
    found = _ask(engine, targets, folders)
    if not any(facts.problem for facts in found.connectors if not facts.registered):
        _remember(found, file)
    return found


def _key(engine: Installation, targets: Sequence[str], folders: Sequence[Path]) -> str:
    scripts = [hashlib.sha256(source.read_bytes()).hexdigest() for source in SOURCES]
    build = [engine.python, engine.distribution, engine.version, engine.packages]
    text = json.dumps([build, scripts, list(targets), [str(f) for f in folders]], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _remembered(file: Path) -> Introspection | None:
    try:
        known = Introspection.model_validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return None
    return known if all(_stamp(path) == seen for path, seen in known.files.items()) else None


def _stamp(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


def _remember(found: Introspection, file: Path) -> None:
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(found.model_dump_json(), encoding="utf-8")
        os.replace(partial, file)
    except OSError:
        return  # a cache that cannot be written costs time, not results


def _ask(engine: Installation, targets: Sequence[str], folders: Sequence[Path]) -> Introspection:
    path = [*map(str, folders), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {**os.environ, **_QUIET, **({"PYTHONPATH": os.pathsep.join(path)} if path else {})}
    try:
        done = subprocess.run(
            [engine.python, str(SCRIPT), *targets],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            env=env,
            check=True,
        )
        return _read(json.loads(done.stdout))
    except subprocess.TimeoutExpired as problem:
        raise _cannot(engine, f"no answer within {LIMIT_S} s") from problem
    except subprocess.CalledProcessError as problem:
        last = "\n".join((problem.stderr or "").splitlines()[-_STDERR_LINES:])
        raise _cannot(engine, f"exit code {problem.returncode}: {last}") from problem
    except (OSError, ValueError) as problem:
        raise _cannot(engine, str(problem)) from problem


def _read(document: dict[str, Any]) -> Introspection:
    if "problem" in document:
        raise ValueError(document["problem"])
    for facts in document["connectors"]:
        if facts.get("problem"):
            facts["problem"] = without_install_paths(facts["problem"])
    return Introspection.model_validate(document)


def _cannot(engine: Installation, why: str) -> EnvironmentProblem:
    return EnvironmentProblem(f"{engine.python} cannot say which connectors it has: {why}")
