"""The command ``probe``: what a person and a program get, and the exit codes."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from conformance import hello, metrics
from conformance.attachment import Attachment
from conformance.probe import probe_pair
from conformance.probe_result import ProbeResult, Request
from conformance.probe_view import show
from conformance.scripted.pairs import Place, place
from conformance.scripted.suite import Suite

KEY = "hush-hush-1234"


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    return Suite(tmp_path_factory.mktemp("probe"))


@pytest.fixture(scope="module")
def here(suite: Suite) -> Iterator[Place]:
    with place(suite.root / "store") as made:
        yield made


def urls(pair: tuple[str, str]) -> tuple[str, ...]:
    return "--prefill-url", pair[0], "--decode-url", pair[1]


def test_exit_codes_and_words(suite: Suite, here: Place) -> None:
    healthy = here.pair(api_key=KEY)
    runs = {
        "healthy": suite.command("probe", *urls(healthy), "--api-key", KEY, "--json"),
        "broken": suite.command("probe", *urls(here.pair("decode:recompute"))),
        "unclear": suite.command("probe", *urls(here.pair("decode:no_stats"))),
        "locked": suite.command("probe", *urls(healthy)),
        "both": suite.command("probe", *urls(healthy), "-c", "nixl", "--handoff", "none"),
        "handoff": suite.command(
            "probe", *urls(healthy), "--api-key", KEY, "--handoff", "params_from_prefil"
        ),
        "model": suite.command("probe", *urls(here.pair()), "--model", "x"),
    }
    ended = {name: run.wait() for name, run in runs.items()}
    codes = {name: run.code for name, run in ended.items()}
    assert codes == {
        "healthy": 0,
        "broken": 1,
        "unclear": 3,
        "locked": 2,
        "both": 2,
        "handoff": 2,
        "model": 2,
    }
    told = json.loads(ended["healthy"].out)
    assert told["conclusion"] == told["cause"] == "transfers"
    assert [step["outcome"] for step in told["steps"]] == ["held"] * 5
    assert told["duration_s"] < 15
    assert KEY not in ended["healthy"].out
    assert "does not transfer: decode asked its connector and was served nothing" in (
        ended["broken"].out
    )
    assert "fix: is it the right --handoff or --connector?" in ended["broken"].out
    assert "could not tell: the decode server at" in ended["unclear"].out
    assert "--api-key" in ended["locked"].err
    assert "give --connector or --handoff, not both" in ended["both"].err
    assert "did you mean 'params_from_prefill'?" in ended["handoff"].err
    assert "serves model, and not 'x'" in ended["model"].err


@pytest.fixture(scope="module")
def found(here: Place) -> ProbeResult:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "SETTLE_POLL_S", 0.002)
        patch.setattr(hello, "QUIET_FOR_S", 0.02)
        attachment = Attachment.of(*here.pair())
        assert attachment is not None
        return probe_pair(Request(attachment))


@pytest.mark.parametrize("terminal", [True, False])
def test_a_table_on_a_terminal_and_lines_elsewhere(found: ProbeResult, terminal: bool) -> None:
    out = io.StringIO()
    show(found, Console(file=out, force_terminal=terminal, width=100, highlight=False))
    text = out.getvalue()
    assert ("┃" in text) == terminal
    for words in ("accounting", "movement", "causality", "parity", "control", "vLLM 0.32.0"):
        assert words in text
    assert "assumed: P returned NIXL's params" in text
    assert "40 of 40 prompt tokens came from outside" in text.replace("\n", " ")


def test_a_server_that_hangs_is_not_waited_for(here: Place) -> None:
    attachment = Attachment.of(*here.pair("decode:slow:1500"))
    assert attachment is not None
    told = probe_pair(Request(attachment, answer_limit_s=0.4))
    assert (told.cause, told.exit_code) == ("refused", 1)
    assert "no answer from the decode server within" in told.sentence


def test_the_result_can_be_read_back(found: ProbeResult, tmp_path: Path) -> None:
    assert ProbeResult.model_validate_json(found.model_dump_json()) == found
