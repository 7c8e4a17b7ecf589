"""Every shipped profile is one that vLLM's own config classes accept, on both sides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance.placeholders import fill, names_in
from conformance.profile import Profile, Role
from conformance.profile_file import builtin_profiles
from conformance.serving import engine
from engine.conftest import Child

pytestmark = pytest.mark.timeout(400)  # importing vLLM and a connector's packages takes a while

SCRIPT = Path(engine.__file__).parent / "validate_config.py"
Config = dict[str, Any]
ROLES: tuple[Role, Role] = ("prefill", "decode")


@pytest.fixture(scope="module")
def answers(engine_child: Child) -> dict[str, Any]:
    """What vLLM says of all profiles and of wrong configs, by name; one child for all."""
    profiles = builtin_profiles()
    metrics = {metric for profile in profiles.values() for metric in metrics_of(profile)}
    configs = {
        f"{name} {role}": config_of(profiles[name], role) for name in profiles for role in ROLES
    }
    configs |= wrong_configs(configs["offloading-fs prefill"])
    vllm_metrics = {name for name in metrics if name.startswith("vllm:")}
    asked = {
        "configs": list(configs.values()),
        "metrics": sorted(vllm_metrics | {"vllm:pigeons_total"}),
    }
    told = engine_child(SCRIPT, asked)
    by_name = dict(zip(configs, told["configs"], strict=True))
    return {**by_name, "unknown_metrics": told["unknown_metrics"]}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", builtin_profiles())
def test_vllm_accepts_the_config(answers: dict[str, Any], name: str, role: Role) -> None:
    profile = builtin_profiles()[name]
    must_be_accepted(answers[f"{name} {role}"], profile)


def test_vllm_exports_every_metric_that_profiles_name(answers: dict[str, Any]) -> None:
    assert answers["unknown_metrics"] == ["vllm:pigeons_total"]


@pytest.mark.parametrize("wrong", ["kv_rank", "kv_boss", "PigeonConnector", "shelf", "PigeonSpec"])
def test_a_wrong_config_is_refused(answers: dict[str, Any], wrong: str) -> None:
    assert wrong in answers[wrong]["refused"]


def test_a_wrong_child_is_refused(answers: dict[str, Any]) -> None:
    assert answers["child"]["refused"] is None
    assert "kv_rank" in answers["child"]["children"][0]["refused"]


def wrong_configs(good: Config) -> dict[str, Config]:
    """By what is wrong with each."""

    def with_extra(**changes: Any) -> Config:
        return {
            **good,
            "kv_connector_extra_config": {**good["kv_connector_extra_config"], **changes},
        }

    child = {**good, "kv_rank": 0}
    return {
        "kv_rank": child,
        "kv_boss": {**good, "kv_role": "kv_boss"},
        "PigeonConnector": {**good, "kv_connector": "PigeonConnector"},
        "shelf": with_extra(secondary_tiers=[{"type": "shelf"}]),
        "PigeonSpec": with_extra(spec_name="PigeonSpec"),
        "child": {
            "kv_connector": "MultiConnector",
            "kv_role": "kv_both",
            "kv_connector_extra_config": {"connectors": [child]},
        },
    }


def must_be_accepted(found: dict[str, Any], profile: Profile) -> None:
    assert found["refused"] is None
    if found["not_importable"]:
        assert profile.packages or "cpu" not in profile.platforms, found["not_importable"]
    else:
        assert found["connector"]
    for child, part in zip(found["children"], profile.parts, strict=True):
        must_be_accepted(child, part)


def config_of(profile: Profile, role: Role) -> Config:
    """As a server would be given it, with a lease of each kind made up."""
    made_up = {"port": "20001", "dir": "/tmp/kvc", "file": "/tmp/kvc/file", "bin": "/bin/true"}
    config = profile.kv_transfer_config(role, "")
    leased = {(kind, name): made_up.get(kind, "/bin/python") for kind, name in names_in(config)}
    filled: Config = fill(config, leased)
    return filled


def metrics_of(profile: Profile) -> set[str]:
    named = {record.metric for record in profile.movement if record.metric}
    return named | ({profile.settle.metric} if profile.settle else set())
