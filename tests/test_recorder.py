"""The replay line: tries one cell again, the same way, and no other."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from conformance.options import RunOptions
from conformance.profile_file import builtin_profiles
from conformance.recorder import replay_line
from conformance.registry import PlannedCell, plan

PROFILES = builtin_profiles()


@pytest.fixture(autouse=True)
def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.options.builtin_profiles", lambda: PROFILES)


def cells(**options: object) -> list[PlannedCell]:
    return plan(RunOptions.model_validate({"connectors": ["nixl"], **options}), "cpu")


def words(cell: PlannedCell, options: RunOptions) -> dict[str, str]:
    """The line as a shell would read it, as option and value."""
    program, command, *rest = shlex.split(replay_line(cell, options))
    assert (program, command) == ("kv-conformance", "run")
    return dict(zip(rest[::2], rest[1::2], strict=True))


@pytest.mark.parametrize("cell", cells(real_model="all"), ids=lambda cell: cell.id)
def test_a_replay_line_selects_its_cell_alone(cell: PlannedCell) -> None:
    given = words(cell, RunOptions(seed=7))
    assert (given["--connector"], given["--check"]) == ("nixl", cell.id)
    assert given["--seed"] == "7"
    again = cells(checks=[given["--check"]], real_model=given.get("--real-model", "auto"))
    assert [(one.id, one.model) for one in again] == [(cell.id, cell.model)]


def test_a_real_model_cell_is_replayed_where_the_profile_does_not_ask_for_it() -> None:
    every = {"connectors": ["example"], "real_model": "all"}
    cell = next(cell for cell in cells(**every) if cell.check.model == "real")
    assert words(cell, RunOptions())["--real-model"] == "all"


def test_the_model_and_the_profiles_of_the_run_are_kept() -> None:
    options = RunOptions(model="Qwen/Qwen3-0.6B", profiles=(Path("a.yaml"), Path("b.yaml")))
    line = replay_line(cells()[0], options)
    assert "--profile a.yaml --profile b.yaml --model Qwen/Qwen3-0.6B" in line


def test_the_limit_of_an_answer_is_kept() -> None:
    given = words(cells()[0], RunOptions(answer_limit_s=2.5))
    assert given["--answer-limit"] == "2.5"


def test_what_was_not_given_is_not_repeated() -> None:
    assert set(words(cells()[0], RunOptions())) == {"--connector", "--check", "--seed"}
