"""``init-profile``: the first profile loads at once and says what is left to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from conformance.cli import app
from conformance.errors import SuiteError, UsageError
from conformance.init_profile import guess_handoff, name_for
from conformance.introspection import ConnectorFacts
from conformance.profile import Granularity, Profile
from conformance.profile_file import load_profile
from conformance.scripted.environment import server_python

OWN = ("--module-path", "conformance.scripted.connector_classes")
Run = Callable[..., Result]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return server_python(tmp_path_factory.mktemp("engine") / "environment")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def run(python: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command, in a folder of its own."""
    monkeypatch.setenv("KV_CONFORMANCE_CACHE", str(cache))
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> Result:
        given = ["init-profile", *arguments, "--server-python", str(python)]
        return CliRunner().invoke(app, given)

    return command


def written(result: Result, name: str) -> Profile:
    assert result.exit_code == 0, result.exception
    return load_profile(Path(f"{name}.yaml"))


def problem_of(result: Result) -> str:
    assert isinstance(result.exception, SuiteError), result.output
    return str(result.exception)


def test_a_connector_that_returns_params_gets_the_handoff_that_passes_them_on(run: Run) -> None:
    profile = written(run("NixlPullConnector"), "nixl-pull")
    assert (profile.connector, profile.module_path) == ("NixlPullConnector", None)
    assert profile.handoff == "params_from_prefill"
    assert profile.granularity is Granularity.TOKEN
    assert profile.causality.method == "swap_params"
    assert profile.platforms == ("cpu",)
    assert profile.capabilities.model_dump() == {
        "hma": True,
        "piecewise_cudagraph": False,
        "load_errors": True,
        "reset_cache": False,
        "stats": False,
        "prom_metrics": True,
    }


def test_a_connector_that_returns_none_gets_no_handoff(run: Run) -> None:
    profile = written(run("ExampleConnector"), "example")
    assert profile.handoff == "none"
    assert profile.granularity is Granularity.BLOCK
    assert profile.causality.method == "none"


def test_a_class_of_ones_own_is_read_from_its_folder(run: Run, tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "mine.py").write_text(
        "from conformance.scripted.connector_classes import Whole\n"
        "class MineConnector(Whole): pass\n"
    )
    (tmp_path / "out").mkdir()
    given = ("--module-path", "mine", "--python-path", "code", "--out", "out/p.yaml")
    assert run("MineConnector", *given).exit_code == 0
    profile = load_profile(Path("out/p.yaml"))
    assert (profile.name, profile.module_path) == ("mine", "mine")
    assert profile.python_folders() == (tmp_path / "code",)
    assert profile.handoff == "params_from_prefill"


def test_what_only_the_author_can_know_is_marked(run: Run) -> None:
    assert run("ExampleConnector").exit_code == 0
    text = Path("example.yaml").read_text()
    for field in ("summary", "handoff", "granularity", "movement", "platforms", "packages"):
        before = text[: text.index(f"\n{field}:")].rsplit("\n\n", 1)[-1]
        line = text[text.index(f"\n{field}:") :].split("\n")[1]
        assert "TODO" in before + line, field
    assert "docs/certify-your-connector.md" in text
    assert "mooncake_bootstrap:" in text


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("TwoArguments", "vLLM passes vllm_config, role, kv_cache_config"),
        ("Unfinished", "it lacks get_num_new_matched_tokens"),
        ("Veiled", "does not tell whether prefill returns params"),
    ],
)
def test_what_keeps_a_class_from_working_is_noted_in_the_file(
    run: Run, name: str, words: str
) -> None:
    assert run(name, *OWN, "--out", "p.yaml").exit_code == 0
    assert load_profile(Path("p.yaml")).connector == name
    assert words in Path("p.yaml").read_text()


def test_a_registered_class_whose_package_is_missing_still_gets_a_profile(run: Run) -> None:
    profile = written(run("HiSparseConnector"), "hi-sparse")
    text = Path("hi-sparse.yaml").read_text()
    assert "NOTE: the class could not be loaded" in text
    assert "ModuleNotFoundError" in text
    assert profile.capabilities.model_dump(exclude_none=True) == {}


def test_an_unknown_class_is_answered_with_the_registered_ones_and_the_nearest(run: Run) -> None:
    told = problem_of(run("NixlPulConnector"))
    assert "'NixlPulConnector' is not registered in vLLM 0.32.0" in told
    assert "did you mean 'NixlPullConnector'" in told
    assert "--module-path" in told
    assert "Registered: ExampleConnector, ExampleHiddenStatesConnector, HiSparse" in told
    assert not list(Path().glob("*.yaml"))


@pytest.mark.parametrize(
    ("name", "module", "words"),
    [
        ("Absent", "conformance.scripted.connector_classes", "has no attribute 'Absent'"),
        ("Mine", "nowhere", "No module named 'nowhere'"),
        (
            "Foreign",
            "conformance.scripted.connector_classes",
            "not a subclass of KVConnectorBase_V1",
        ),
    ],
)
def test_a_class_of_ones_own_that_cannot_be_loaded_is_an_error_with_the_fix(
    run: Run, name: str, module: str, words: str
) -> None:
    told = problem_of(run(name, "--module-path", module))
    assert words in told
    assert f"--module-path {module}" in told
    assert "--python-path" in told
    assert not list(Path().glob("*.yaml"))


def test_a_file_that_exists_is_never_overwritten(run: Run) -> None:
    Path("example.yaml").write_text("mine")
    assert "example.yaml exists; give another name" in problem_of(run("ExampleConnector"))
    assert Path("example.yaml").read_text() == "mine"


def test_a_folder_that_does_not_exist_is_named(run: Run) -> None:
    told = problem_of(run("ExampleConnector", "--out", "no/such/p.yaml"))
    assert "--out no/such/p.yaml cannot be written: No such file or directory" in told


def test_a_profile_that_does_not_load_is_not_left_behind(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> Profile:
        raise UsageError(f"profile {path} is malformed")

    monkeypatch.setattr("conformance.init_profile.load_profile", refuse)
    assert "malformed" in problem_of(run("ExampleConnector"))
    assert not Path("example.yaml").exists()


def test_the_file_is_yaml_with_every_field_that_has_to_be_filled_in(run: Run) -> None:
    assert run("NixlConnector").exit_code == 0
    document = yaml.safe_load(Path("nixl.yaml").read_text())
    assert {"name", "handoff", "granularity", "prefill", "decode", "causality"} <= set(document)
    assert document["prefill"]["kv_role"] == "kv_producer"


@pytest.mark.parametrize(
    ("connector", "name"),
    [
        ("NixlPushConnector", "nixl-push"),
        ("LMCacheMPConnector", "lm-cache-mp"),
        ("HF3FSKVConnector", "hf3-fs"),
        ("SimpleCPUOffloadConnector", "simple-cpu-offload"),
        ("Connector", "connector"),
        ("My_Own", "my-own"),
    ],
)
def test_the_name_of_a_profile(connector: str, name: str) -> None:
    assert name_for(connector) == name


@pytest.mark.parametrize(
    ("params", "handoff"),
    [
        (("remote_engine_id",), "params_from_prefill"),
        (("do_remote_prefill",), "params_from_prefill"),
        ((), "params_from_prefill"),
        (("hidden_states_path",), "none"),
        (("num_cached_tokens",), "none"),
    ],
)
def test_params_that_name_no_remote_place_are_no_handoff(
    params: tuple[str, ...], handoff: str
) -> None:
    facts = ConnectorFacts(name="A", registered=True, returns_params=True, params=params)
    guessed, why = guess_handoff(facts)
    assert guessed == handoff
    assert all(param in why for param in params)
