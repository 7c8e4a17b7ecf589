"""Run under a server's Python: prints, as JSON, what its connector classes say of themselves.

``introspect.py [MODULE:CLASS …]``: every connector in the engine's own registry, and the classes
given. This one imports vLLM, which takes seconds. Every name of vLLM is guarded: another version
is a ``problem`` in the document, and a class that cannot be imported says why.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
from collections.abc import Callable
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
_ROOT = os.path.dirname(os.path.dirname(_HERE))
# Neither this folder's modules nor what is installed beside the suite may be found by the engine.
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _HERE]
sys.path.append(_ROOT)
from conformance.serving.introspect_source import returned_params  # noqa: E402

sys.path.pop()

KV_CONNECTOR = "vllm.distributed.kv_transfer.kv_connector"
DEPENDS = "depends on the configuration"
Facts = dict[str, Any]


def main() -> None:
    """Print the document; what vLLM prints meanwhile goes to standard error."""
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    json.dump(document(sys.argv[1:]), answer, default=str)
    answer.close()


def document(given: list[str]) -> Facts:
    """Engine, platform, connectors, and the files that were read, with size and time."""
    try:
        engine = _engine()
        factory = importlib.import_module(f"{KV_CONNECTOR}.factory").KVConnectorFactory
        base = importlib.import_module(f"{KV_CONNECTOR}.v1.base")
        _load_plugins()
        loaders: dict[str, Callable[[], type]] = dict(factory._registry)
        classes = [_registered(name, loader, base) for name, loader in loaders.items()]
    except (Exception, SystemExit) as problem:
        version = getattr(sys.modules.get("vllm"), "__version__", "of unknown version")
        return {
            "problem": f"vLLM {version} has no connector registry that this suite can read: "
            f"{_words(problem)}"
        }
    classes += [_given(target, base) for target in given]
    files = {inspect.getfile(factory), *(f for facts in classes for f in facts.pop("files", ()))}
    return {**engine, "connectors": classes, "files": {file: _stamp(file) for file in files}}


def _engine() -> Facts:
    facts: Facts = {"vllm": importlib.import_module("vllm").__version__, "platform": None}
    try:
        platform = importlib.import_module("vllm.platforms").current_platform
        facts["platform"] = platform.device_type or type(platform).__name__
    except (Exception, SystemExit) as problem:
        facts["platform_problem"] = _words(problem)
    return facts


def _load_plugins() -> None:
    """Plugins may register connectors; a server loads them, so they belong to its registry."""
    try:
        importlib.import_module("vllm.plugins").load_general_plugins()
    except (Exception, SystemExit) as problem:
        print(f"general plugins were not loaded: {_words(problem)}", file=sys.stderr)


def _registered(name: str, loader: Callable[[], type], base: Any) -> Facts:
    kept = inspect.getclosurevars(loader).nonlocals if inspect.isfunction(loader) else {}
    facts = {"name": name, "registered": True, "module": kept.get("module_path")}
    return {**facts, **_facts(loader, base)}


def _given(target: str, base: Any) -> Facts:
    module, _, name = target.partition(":")

    def load() -> type:
        found = getattr(importlib.import_module(module), name)
        if not isinstance(found, type):
            raise TypeError(f"{target} is {found!r}, not a class")
        return found

    return {"name": name, "registered": False, "module": module, **_facts(load, base)}


def _facts(load: Callable[[], type], base: Any) -> Facts:
    """Everything a class says of itself, or the words with which it cannot be loaded."""
    try:
        cls = load()
        ancestor = base.KVConnectorBase_V1
        if not issubclass(cls, ancestor):
            return {"problem": f"{cls.__name__} is not a subclass of {ancestor.__name__}"}
        return {**_class_facts(cls, base), **returned_params(cls, ancestor)}
    except (Exception, SystemExit) as problem:
        return {"problem": _words(problem)}


def _class_facts(cls: type, base: Any) -> Facts:
    ancestor = base.KVConnectorBase_V1
    parameters = list(inspect.signature(cls).parameters.values())
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
    hma = getattr(base, "SupportsHMA", None)
    overrides = _overrides(cls, ancestor)
    return {
        "defined_in": cls.__module__,
        "class_name": cls.__qualname__,
        "constructor": [p.name for p in parameters],
        # What vLLM 0.32.0 asks of a class given by kv_connector_module_path.
        "takes_kv_cache_config": takes_all or "kv_cache_config" in [p.name for p in parameters],
        "abstract_left": sorted(getattr(cls, "__abstractmethods__", ())),
        "hma": hma is not None and issubclass(cls, hma),
        "kv_cache_layout": _asked(cls, "get_required_kvcache_layout", None),
        "piecewise_cudagraph": _asked(cls, "requires_piecewise_for_cudagraph", {}),
        "prom_metrics": "build_prom_metrics" in overrides,
        "stats": "build_kv_connector_stats" in overrides,
        "overrides": overrides,
        "files": _files(cls),
    }


def _overrides(cls: type, ancestor: type) -> list[str]:
    """Hooks with a default in the base class that this class replaces."""
    own = {name for part in cls.__mro__ if part not in ancestor.__mro__ for name in vars(part)}
    required: frozenset[str] = getattr(ancestor, "__abstractmethods__", frozenset())
    return sorted(n for n in vars(ancestor) if n[:1] != "_" and n in own and n not in required)


def _asked(cls: Any, hook: str, argument: Any) -> Any:
    """The answer of a class method that can be asked without a running engine."""
    if not hasattr(cls, hook):
        return None
    try:
        return getattr(cls, hook)(argument)
    except Exception:
        return DEPENDS


def _files(cls: type) -> list[str]:
    modules = [sys.modules.get(part.__module__) for part in cls.__mro__]
    return [file for file in (getattr(module, "__file__", None) for module in modules) if file]


def _stamp(file: str) -> list[int]:
    try:
        found = os.stat(file)
    except OSError:  # inside a zip archive
        return [0, 0]
    return [found.st_mtime_ns, found.st_size]


def _words(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {problem}"


if __name__ == "__main__":
    main()
