"""The environments of a run: which one a connector's servers run in, and who decides that."""

from __future__ import annotations

from pathlib import Path

import pytest
from sample_profiles import profile
from test_engine import FACTS, interpreter

from conformance.errors import EnvironmentProblem
from conformance.profile import Profile
from conformance.scripted.environment import server_python
from conformance.serving.engine import Engines


def environment(folder: Path, version: str = "0.32.0") -> str:
    """An interpreter whose environment has that vLLM."""
    folder.mkdir(parents=True)
    facts = str(FACTS | {"version": version}).replace("'", '"').replace("None", "null")
    return interpreter(folder, facts)


@pytest.fixture
def default(tmp_path: Path) -> str:
    return environment(tmp_path / "default")


def mine(folder: Path, server_python: str | None = None) -> Profile:
    return profile(path=folder / "mine.yaml", server_python=server_python)


def test_a_connector_without_its_own_runs_in_the_default(tmp_path: Path, default: str) -> None:
    engines = Engines(default, {"other": str(tmp_path / "gone")})
    assert engines.of(mine(tmp_path)) is engines.default
    assert engines.default.python == default


def test_a_profiles_interpreter_is_beside_its_file(tmp_path: Path, default: str) -> None:
    python = environment(tmp_path / "profiles" / "env")
    found = Engines(default, {}).of(mine(tmp_path / "profiles", "env/python"))
    assert found.python == python
    assert Engines(default, {}).of(mine(tmp_path, python)).python == python


def test_a_profiles_interpreter_without_a_folder_is_on_the_search_path(
    tmp_path: Path, default: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment(tmp_path / "bin")
    (tmp_path / "bin" / "python").rename(tmp_path / "bin" / "python-of-mine")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin")
    assert Engines(default, {}).of(mine(tmp_path, "python-of-mine")).python == "python-of-mine"


def test_the_command_line_decides_over_the_profile(tmp_path: Path, default: str) -> None:
    given = environment(tmp_path / "given")
    engines = Engines(default, {"mine": given})
    assert engines.of(mine(tmp_path, "absent/python")).python == given


def test_a_path_on_the_command_line_is_relative_to_where_it_was_typed(
    tmp_path: Path, default: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment(tmp_path / "here" / "env")
    monkeypatch.chdir(tmp_path / "here")
    engines = Engines(default, {"mine": "env/python"})
    assert engines.of(mine(tmp_path / "profiles")).python == "env/python"


def test_answers_of_two_versions_are_not_compared(tmp_path: Path, default: str) -> None:
    other = environment(tmp_path / "other", version="0.31.0")
    with pytest.raises(EnvironmentProblem) as caught:
        Engines(default, {"mine": other}).of(mine(tmp_path))
    message = str(caught.value)
    assert f"MyConnector runs in {other} with vLLM 0.31.0" in message
    assert f"the reference in {default} with 0.32.0" in message


def test_a_package_that_only_a_profile_names_is_looked_for(tmp_path: Path) -> None:
    python = server_python(tmp_path / "env")
    site = tmp_path / "env" / "site"
    for name in ("birds", "pigeons", "strays"):
        (site / f"{name}.py").touch()
    # A distribution may be named otherwise than the module that it brings.
    for name, version, brings in (("birds", "1.2", ""), ("pigeon-post", "3.4", "pigeons\n")):
        info = site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
        (info / "top_level.txt").write_text(brings)
    own = profile(packages=["birds", "pigeons", "strays", "absent_one", "nixl"])
    found = Engines(str(python), {}).of(own)
    assert found.missing(own.packages) == ["absent_one"]
    versions = [found.packages[name] for name in ("birds", "pigeons", "strays")]
    assert versions == ["1.2", "3.4", "importable"]


def test_an_interpreter_that_is_not_there_is_named(tmp_path: Path, default: str) -> None:
    with pytest.raises(EnvironmentProblem, match="profiles/absent/python: no such interpreter"):
        Engines(default, {}).of(mine(tmp_path / "profiles", "absent/python"))
