"""Options: a name that does not exist is refused with the nearest one that does."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from conformance.errors import UsageError
from conformance.options import GPU_MODEL, RunOptions, unknown_check
from conformance.profile_file import PROFILE_FOLDER, builtin_profiles


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A profile of somebody's own connector."""
    document = yaml.safe_load((PROFILE_FOLDER / "example.yaml").read_text())
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump(document | {"name": "mine"}))
    return file


def refusal(options: RunOptions) -> str:
    with pytest.raises(UsageError) as caught:
        options.validated()
    return str(caught.value)


def test_what_exists_is_accepted() -> None:
    options = RunOptions(
        connectors=("nixl",),
        features=("streaming",),
        model="tiny-llama",
        port_range="21000-21999",
    )
    assert options.validated() is options
    assert RunOptions().validated()


@pytest.mark.parametrize(
    ("given", "near"), [("nixel", "nixl"), ("NIXL", None), ("exampel", "example"), ("zzz", None)]
)
def test_an_unknown_connector_suggests_a_near_one(given: str, near: str | None) -> None:
    message = refusal(RunOptions(connectors=("nixl", given)))
    assert f"--connector {given!r} is unknown" in message
    assert (f"did you mean {near!r}?" in message) == (near is not None)
    assert f"Known: {', '.join(sorted(builtin_profiles()))}" in message


def test_an_unknown_feature_suggests_a_near_one() -> None:
    message = refusal(RunOptions(features=("streaming", "prompt-lengths")))
    assert "--feature 'prompt-lengths' is unknown; did you mean 'prompt-length'?" in message
    assert "basic-transfer" in message


def test_an_unknown_check_suggests_a_near_one() -> None:
    message = str(unknown_check("transfer/comletion", ["transfer/completion", "length"]))
    assert "--check 'transfer/comletion' is unknown" in message
    assert "did you mean 'transfer/completion'?" in message


@pytest.mark.parametrize("text", ["30000-20000", "http", "80"])
def test_a_bad_port_range_is_refused(text: str) -> None:
    assert f"--port-range {text!r}" in refusal(RunOptions(port_range=text))


def test_a_bad_profile_is_refused(tmp_path: Path) -> None:
    assert "gone.yaml" in refusal(RunOptions(profiles=(tmp_path / "gone.yaml",)))


@pytest.mark.parametrize("name", ["tiny-lama", "/no/such/folder", "./gone", "a/b/c"])
def test_an_unknown_model_is_refused_with_the_known_ones(name: str) -> None:
    message = refusal(RunOptions(model=name))
    assert f"--model {name!r} is unknown" in message
    assert "tiny-llama" in message
    assert "Hugging Face id" in message


def test_a_hub_id_and_a_folder_are_models(tmp_path: Path) -> None:
    for name in ("Qwen/Qwen3-0.6B", str(tmp_path)):
        assert RunOptions(model=name).validated().model == name


def test_without_a_choice_every_known_connector_runs() -> None:
    assert RunOptions().chosen_profiles() == builtin_profiles()


def test_connectors_run_in_the_order_asked_for() -> None:
    assert list(RunOptions(connectors=("nixl", "example")).chosen_profiles()) == ["nixl", "example"]
    assert list(RunOptions(connectors=("example", "nixl")).chosen_profiles()) == ["example", "nixl"]
    assert list(RunOptions(connectors=("nixl", "nixl")).chosen_profiles()) == ["nixl"]


def test_an_own_profile_alone_runs_alone(own: Path) -> None:
    chosen = RunOptions(profiles=(own,)).chosen_profiles()
    assert [(name, profile.path) for name, profile in chosen.items()] == [("mine", own)]


def test_an_own_profile_runs_beside_the_connectors_asked_for(own: Path) -> None:
    options = RunOptions(profiles=(own,), connectors=("nixl",))
    assert list(options.chosen_profiles()) == ["nixl", "mine"]
    both = RunOptions(profiles=(own,), connectors=("mine", "nixl"))
    assert list(both.chosen_profiles()) == ["mine", "nixl"]


def test_an_own_profile_takes_the_place_of_a_shipped_one_with_its_name(own: Path) -> None:
    own.write_text(own.read_text().replace("name: mine", "name: nixl"))
    chosen = RunOptions(profiles=(own,), connectors=("nixl",)).chosen_profiles()
    assert chosen["nixl"].path == own


def test_the_model_follows_the_device_and_the_kind_of_check() -> None:
    options = RunOptions()
    assert options.model_for("fast", "cpu") == "tiny-llama"
    assert options.model_for("real", "cpu") == "smollm2-135m-instruct"
    assert options.model_for("fast", "cuda") == options.model_for("real", "rocm") == GPU_MODEL


@pytest.mark.parametrize("kind", ["fast", "real"])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_model_asked_for_serves_every_check(kind: str, device: str) -> None:
    assert RunOptions(model="some/model").model_for(kind, device) == "some/model"


def test_a_recipe_that_a_check_names_is_its_model_whatever_is_asked_for() -> None:
    for options in (RunOptions(), RunOptions(model="some/model")):
        assert options.model_for("tiny-qwen3-moe", "cpu") == "tiny-qwen3-moe"


def test_options_are_closed_and_fixed() -> None:
    with pytest.raises(ValidationError):
        RunOptions.model_validate({"conector": ["nixl"]})
    with pytest.raises(ValidationError):
        RunOptions(real_model="sometimes")
    with pytest.raises(ValidationError):
        RunOptions().seed = 1  # type: ignore[misc]
