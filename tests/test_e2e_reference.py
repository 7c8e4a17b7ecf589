"""A reference that dies or proves nothing is never held against the connector."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.scripted.suite import Ended, Running, Suite
from conformance.verdict import Verdict

pytestmark = pytest.mark.timeout(500)

NIXL = ("--connector", "nixl")
LENGTHS = ("--check", "length/B", "--check", "length/B+1", "--check", "length/2B")
# 17 tokens are B+1.
RUNS = {
    "reference:die_at_start": ("--check", "length/B"),
    "reference:die_on_length:17": LENGTHS,
    "reference:hang_at_start": ("--check", "start/ready", "--start-timeout", "2"),
}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    made = Suite(tmp_path_factory.mktemp("reference"))
    yield made
    assert made.left_behind() == []
    assert list((made.root / "tmp").glob("kvc-*")) == []


@pytest.fixture(scope="module")
def runs(suite: Suite) -> dict[str, Running]:
    """Every run of this file but one, started."""
    return {
        fault: suite.start(*NIXL, *arguments, fault=fault, name=fault)
        for fault, arguments in RUNS.items()
    }


def test_death_while_starting(runs: dict[str, Running]) -> None:
    ended = runs["reference:die_at_start"].wait()
    assert ended.code == 3
    for verdict, message in outcomes(ended):
        assert verdict is Verdict.ERROR
        assert "the reference server died while starting: RuntimeError: boom" in message


def test_a_hang_while_starting_blames_nobody(runs: dict[str, Running]) -> None:
    ended = runs["reference:hang_at_start"].wait()
    ((verdict, message),) = outcomes(ended)
    assert verdict is Verdict.ERROR
    assert "was not ready within 2 s" in message
    assert ended.code == 3


def test_death_at_a_request_is_an_error_of_that_cell(runs: dict[str, Running]) -> None:
    ended = runs["reference:die_on_length:17"].wait()
    verdict, message = outcomes(ended)[1]
    assert verdict is Verdict.ERROR, message
    assert "the reference server died: RuntimeError: a prompt of 17 tokens" in message


def test_a_reference_that_died_is_started_again(runs: dict[str, Running]) -> None:
    ended = runs["reference:die_on_length:17"].wait()
    first, _, last = outcomes(ended)
    assert first[0] is Verdict.PASS
    assert last[0] is Verdict.PASS, last[1]
    assert [start.role for start in ended.report.servers].count("reference") == 2
    assert ended.code == 3


def test_a_model_that_answers_everything_alike_proves_nothing(tmp_path: Path) -> None:
    suite = Suite(tmp_path)
    running = suite.start(*NIXL, *LENGTHS, fault="constant")
    most = running.most_at_once()
    ended = running.wait()
    assert ended.code == 3
    for verdict, message in outcomes(ended):
        assert verdict is Verdict.ERROR
        assert "gives the same answer to different prompts" in message
    # Found out when three servers are up: they must not stay while others are started.
    assert most <= 6 + 1, "three servers, each with its minder, and a child of the suite"
    assert ended.report.timing.server_starts <= 6
    assert suite.left_behind() == []


def outcomes(ended: Ended) -> list[tuple[Verdict, str]]:
    """Verdict and message of each cell, in the order of the plan."""
    return [(cell.verdict, cell.message) for cell in ended.report.connectors[0].cells]
