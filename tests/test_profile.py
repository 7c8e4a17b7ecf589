"""Profiles: what is wrong is named with the file, the place in it and the fix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance.errors import UsageError
from conformance.profile import Profile
from conformance.profile_file import builtin_profiles, load_profile

GOOD: dict[str, Any] = {
    "name": "mine",
    "title": "MyConnector",
    "connector": "MyConnector",
    "summary": "Moves KV by pigeon.",
    "handoff": "none",
    "granularity": "block",
    "platforms": ["cpu"],
    "prefill": {"kv_role": "kv_producer", "extra_config": {"path": "${dir:store}"}},
    "decode": {"kv_role": "kv_consumer", "extra_config": {"path": "${dir:store}"}},
    "movement": [{"side": "prefill", "files": "store"}],
    "causality": {"method": "damage_files", "dir": "store"},
}
WITHOUT = object()


def written(folder: Path, **changes: Any) -> Path:
    document = {key: value for key, value in (GOOD | changes).items() if value is not WITHOUT}
    file = folder / "mine.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


def prefill(**changes: Any) -> dict[str, Any]:
    return {**GOOD["prefill"], **changes}


def refusal(file: Path) -> str:
    with pytest.raises(UsageError) as caught:
        load_profile(file)
    assert str(file) in str(caught.value)
    return str(caught.value)


def test_a_good_profile_loads(tmp_path: Path) -> None:
    file = written(tmp_path)
    profile = load_profile(file)
    assert (profile.name, profile.path) == ("mine", file)
    assert profile.placeholders("prefill") == profile.placeholders("decode") == {("dir", "store")}
    assert profile.placeholders() == set()
    assert profile.instance("prefill").kv_role == "kv_producer"
    assert profile.instance("decode").kv_role == "kv_consumer"


def test_the_digest_changes_with_the_file(tmp_path: Path) -> None:
    first = load_profile(written(tmp_path)).digest
    assert load_profile(written(tmp_path)).digest == first
    assert load_profile(written(tmp_path, summary="By owl.")).digest != first


@pytest.mark.parametrize(
    ("changes", "place", "words"),
    [
        ({"colour": "red"}, "colour", "remove it or fix the spelling"),
        ({"prefill": prefill(kv_rank=0)}, "prefill.kv_rank", "remove it or fix the spelling"),
        ({"title": WITHOUT}, "title", "Field required"),
        ({"name": "My Connector"}, "name", "should match pattern"),
        ({"granularity": "page"}, "granularity", "'all_but_last' or 'block'"),
        ({"platforms": ["cpu", "abacus"]}, "platforms.1", "should be 'cpu'"),
        ({"prefill": prefill(kv_role="boss")}, "prefill.kv_role", "'kv_producer'"),
        ({"prefill": prefill(env={"RANK": 0})}, "prefill.env.RANK", "valid string"),
        ({"causality": {"method": "hope"}}, "causality.method", "'damage_command' or 'none'"),
        ({"causality": WITHOUT}, "(document)", "'causality' is missing: say how decode is made to"),
        ({"causality": {"method": "none"}}, "causality", "method none needs 'why'"),
        ({"causality": {"method": "damage_files"}}, "causality", "damage_files needs 'dir'"),
        ({"causality": {"method": "damage_memory"}}, "causality", "damage_memory needs 'segment'"),
        (
            {"causality": {"method": "damage_command"}},
            "causality",
            "damage_command needs 'command'",
        ),
        (
            {"movement": [{"side": "decode", "metric": "m", "files": "store"}]},
            "movement.0",
            "exactly one of 'metric' and 'files'",
        ),
        (
            {"features": {"streaming": {"support": "maybe"}}},
            "features.streaming.support",
            "'yes', 'no' or 'partly'",
        ),
        ({"features": {"teleport": {"support": "yes"}}}, "features.teleport", "basic-transfer"),
        ({"handoff": "pigeon"}, "handoff: 'pigeon'", "params_from_prefill"),
        ({"movement": [{"side": "decode", "files": "gone"}]}, "'gone'", "use ${dir:gone} in"),
        ({"causality": {"method": "damage_files", "dir": "gone"}}, "'gone'", "use ${dir:gone} in"),
    ],
)
def test_a_malformed_field_is_named_with_the_fix(
    tmp_path: Path, changes: dict[str, Any], place: str, words: str
) -> None:
    message = refusal(written(tmp_path, **changes))
    assert place in message
    assert words in message


@pytest.mark.parametrize("field", ["extra_config", "kv_config", "env"])
@pytest.mark.parametrize("text", ["${host:a}", "x${port:1st}", "${port}", "${dir:store"])
def test_an_unknown_placeholder_is_named_with_the_fix(
    tmp_path: Path, field: str, text: str
) -> None:
    message = refusal(written(tmp_path, prefill=prefill(**{field: {"key": text}})))
    assert f"prefill.{field}" in message
    assert text.removeprefix("x") in message
    assert "write ${port:name}" in message


def test_placeholders_are_looked_for_at_any_depth(tmp_path: Path) -> None:
    nested = prefill(extra_config={"a": [{"b": "tcp://h:${port:deep}", "c": "${dir:store}"}]})
    profile = load_profile(written(tmp_path, prefill=nested))
    assert profile.placeholders("prefill") == {("port", "deep"), ("dir", "store")}
    nested["extra_config"]["a"][0]["b"] = "${oops}"
    assert "'${oops}'" in refusal(written(tmp_path, prefill=nested))


def test_every_fault_is_listed_at_once(tmp_path: Path) -> None:
    message = refusal(written(tmp_path, colour="red", title=WITHOUT, granularity="page"))
    assert [word in message for word in ("colour", "title", "granularity")] == [True] * 3


@pytest.mark.parametrize("content", [b"name: [", b"\xff\xfe\xff", b"!!python/object:os.system x"])
def test_what_is_not_yaml_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "mine.yaml"
    file.write_bytes(content)
    assert "is not readable YAML" in refusal(file)


@pytest.mark.parametrize("content", ["", "- name: mine", "just words"])
def test_a_document_must_be_a_mapping(tmp_path: Path, content: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(content)
    assert "must be a mapping with 'name'" in refusal(file)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    assert "does not exist" in refusal(tmp_path / "gone.yaml")
    assert "directory" in refusal(tmp_path)


def test_the_shipped_profiles_load_under_their_own_names() -> None:
    profiles = builtin_profiles()
    assert {"nixl", "example"} <= set(profiles)
    for name, profile in profiles.items():
        assert isinstance(profile, Profile)
        assert profile.path.stem == name == profile.name
        assert profile.platforms
        # Something beyond the counters of prompt tokens has to show that KV moved.
        claims = {declared.support for declared in profile.features.values()}
        shown = profile.movement or profile.causality.method != "none"
        assert shown or claims == {"no"} or profile.control
        assert all(declared.source for declared in profile.features.values())
