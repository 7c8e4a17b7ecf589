"""Introspection: what the child says of a scripted engine, and of one it cannot read."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from conformance.introspection import SCRIPT
from conformance.scripted.environment import server_python

OWN = "conformance.scripted.connector_classes"
CLASSES = (
    "Whole",
    "Silent",
    "Veiled",
    "Relayed",
    "TwoArguments",
    "Unfinished",
    "Foreign",
    "Absent",
)


def ask(python: Path, *targets: str) -> dict[str, Any]:
    """What the child prints, run as the suite runs it."""
    done = subprocess.run(
        [python, SCRIPT, *targets],
        capture_output=True,
        text=True,
        check=True,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )
    assert "Traceback" not in done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    python = server_python(tmp_path_factory.mktemp("engine"))
    return ask(python, *(f"{OWN}:{name}" for name in CLASSES))


@pytest.fixture(scope="module")
def facts(answer: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {found["name"]: found for found in answer["connectors"]}


def test_the_engine_and_its_platform_are_named(answer: dict[str, Any]) -> None:
    assert (answer["vllm"], answer["platform"]) == ("0.32.0", "cpu")


def test_the_engines_own_registry_is_told_apart_from_what_was_asked_for(
    facts: dict[str, dict[str, Any]],
) -> None:
    registered = {name for name, found in facts.items() if found["registered"]}
    assert {"ExampleConnector", "NixlConnector", "HiSparseConnector"} <= registered
    assert registered.isdisjoint(CLASSES)


def test_a_class_with_two_names_is_one_class(facts: dict[str, dict[str, Any]]) -> None:
    one, other = facts["NixlConnector"], facts["NixlPullConnector"]
    assert one["class_name"] == other["class_name"] == "NixlPullConnector"
    assert one["defined_in"] == other["defined_in"]


def test_what_a_class_says_of_itself(facts: dict[str, dict[str, Any]]) -> None:
    nixl, example = facts["NixlConnector"], facts["ExampleConnector"]
    assert nixl["hma"] is True
    assert example["hma"] is False
    assert nixl["prom_metrics"] is True
    assert nixl["stats"] is False
    assert example["overrides"] == []
    assert "get_block_ids_with_load_errors" in nixl["overrides"]
    assert "start_load_kv" not in nixl["overrides"]
    assert nixl["kv_cache_layout"] == "depends on the configuration"
    assert example["kv_cache_layout"] is None
    assert example["piecewise_cudagraph"] is False


@pytest.mark.parametrize(
    ("name", "returns", "params"),
    [
        ("NixlConnector", True, ["do_remote_prefill", "remote_block_ids"]),
        ("ExampleConnector", False, []),
        ("Whole", True, ["remote_blocks", "remote_place"]),
        ("Silent", False, []),
        ("Veiled", None, []),
        ("Relayed", True, ["remote_blocks", "remote_place"]),
    ],
)
def test_the_source_tells_whether_prefill_hands_params_over(
    facts: dict[str, dict[str, Any]], name: str, returns: bool | None, params: list[str]
) -> None:
    assert facts[name]["returns_params"] is returns
    assert facts[name]["params"] == params


def test_the_constructor_and_what_is_missing_of_a_class(facts: dict[str, dict[str, Any]]) -> None:
    assert facts["Whole"]["constructor"] == ["vllm_config", "role", "kv_cache_config"]
    assert facts["Whole"]["takes_kv_cache_config"] is True
    assert facts["TwoArguments"]["constructor"] == ["vllm_config", "role"]
    assert facts["TwoArguments"]["takes_kv_cache_config"] is False
    assert facts["Unfinished"]["abstract_left"] == ["get_num_new_matched_tokens"]
    assert facts["Whole"]["abstract_left"] == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("HiSparseConnector", "No module named"),
        ("Absent", "has no attribute 'Absent'"),
        ("Foreign", "Foreign is not a subclass of KVConnectorBase_V1"),
    ],
)
def test_a_class_that_cannot_be_used_says_why(
    facts: dict[str, dict[str, Any]], name: str, words: str
) -> None:
    assert words in facts[name]["problem"]
    assert "hma" not in facts[name]


def test_the_module_of_a_class_that_cannot_be_loaded_is_known(
    facts: dict[str, dict[str, Any]],
) -> None:
    assert facts["HiSparseConnector"]["module"].endswith("v1.hisparse.connector")


@pytest.mark.parametrize("change", ["no vllm", "no factory", "no registry", "no base"])
def test_another_engine_is_a_clear_problem_and_no_traceback(tmp_path: Path, change: str) -> None:
    python = engine_with(tmp_path, change)
    answer = ask(python)
    assert set(answer) == {"problem"}
    assert "no connector registry that this suite can read" in answer["problem"]


def engine_with(root: Path, change: str) -> Path:
    """An engine in which a name that the child reads is missing."""
    python = server_python(root, without=["vllm"])
    if change == "no vllm":
        return python
    package = root / "site" / "vllm" / "distributed" / "kv_transfer" / "kv_connector"
    (package / "v1").mkdir(parents=True)
    (root / "site" / "vllm" / "__init__.py").write_text('__version__ = "9.9"\n')
    registry = "" if change == "no registry" else "_registry = {}"
    if change != "no factory":
        (package / "factory.py").write_text(f"class KVConnectorFactory:\n    {registry or 'pass'}")
    if change != "no base":
        (package / "v1" / "base.py").write_text("class KVConnectorBase_V1: pass\n")
    return python


def test_what_the_engine_prints_does_not_spoil_the_answer(tmp_path: Path) -> None:
    python = engine_with(tmp_path, "")
    init = tmp_path / "site" / "vllm" / "__init__.py"
    init.write_text(init.read_text() + "import os\nprint('hello')\nos.write(1, b'native')\n")
    assert ask(python)["vllm"] == "9.9"


def test_neither_this_suite_nor_its_folder_is_found_by_the_engine(tmp_path: Path) -> None:
    python = engine_with(tmp_path, "")
    init = tmp_path / "site" / "vllm" / "__init__.py"
    look = "from importlib.util import find_spec\n"
    look += "__version__ = str([find_spec(n) is None for n in ('probe_environment', 'matrix')])\n"
    init.write_text(look)
    assert ask(python)["vllm"] == "[True, True]"
