"""Servers that die, hang or find their port taken: what is blamed, and what goes on after it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.report import Cell, ServerStart
from conformance.scripted.suite import Ended, Running, Suite
from conformance.verdict import Verdict

pytestmark = pytest.mark.timeout(500)

LENGTHS = ("--check", "length/B", "--check", "length/B+1", "--check", "length/2B")
ONE = ("--check", "length/B+1")
START = ("--check", "start/ready")
# A port is taken at the first start; later decode dies of B+1, which is 17 tokens.
BAD_START = "prefill:port_in_use:1,decode:die_on_length:17"
RUNS = {
    "decode:die_at_start": (*START, *LENGTHS),
    BAD_START: LENGTHS,
    "decode:port_in_use:2": ONE,
    "decode:hang_at_start": (*START, *ONE, "--start-timeout", "6"),
}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    made = Suite(tmp_path_factory.mktemp("crash"))
    yield made
    assert made.left_behind() == []
    assert list((made.root / "tmp").glob("kvc-*")) == []


@pytest.fixture(scope="module")
def runs(suite: Suite) -> dict[str, Running]:
    """Every run of this file, started."""
    return {
        fault: suite.start("--connector", "nixl", *arguments, fault=fault, name=fault)
        for fault, arguments in RUNS.items()
    }


def test_an_unclear_death_at_start_is_one_failure_in_the_engines_words(
    runs: dict[str, Running],
) -> None:
    ended = runs["decode:die_at_start"].wait()
    first = cells(ended).pop("start/ready")
    assert first.verdict is Verdict.FAIL
    assert "cannot start on cpu and does not say why: it dies with" in first.message
    assert "RuntimeError: boom" in first.message
    assert "raise RuntimeError" in (first.log_excerpt or "")
    assert ended.code == 1
    assert "boom" in ended.out


def test_what_a_pair_that_never_started_was_not_asked_is_not_run(runs: dict[str, Running]) -> None:
    found = cells(runs["decode:die_at_start"].wait())
    del found["start/ready"]
    assert len(found) == 3
    for cell in found.values():
        assert cell.verdict is Verdict.NOT_RUN
        assert "see start/ready: RuntimeError: boom" in cell.message


def test_a_pair_that_was_never_ready_is_tried_once(runs: dict[str, Running]) -> None:
    report = runs["decode:die_at_start"].wait().report
    assert report.timing.server_starts == 3
    assert all("boom" in (start.problem or "") for start in report.servers)


def test_death_at_a_request_fails_that_cell_and_no_other(runs: dict[str, Running]) -> None:
    ended = runs[BAD_START].wait()
    assert verdicts(ended) == {"length/B": "pass", "length/B+1": "fail", "length/2B": "pass"}
    cell = cells(ended)["length/B+1"]
    assert "the decode server died: RuntimeError: a prompt of 17 tokens" in cell.message
    assert "EngineCore encountered" not in cell.message
    assert "raise RuntimeError" in (cell.log_excerpt or "")
    assert ended.code == 1


def test_a_taken_port_is_tried_again_with_another(runs: dict[str, Running]) -> None:
    starts = runs[BAD_START].wait().report.servers
    assert all("already in use" in (start.problem or "") for start in starts[:3])
    assert not any(start.problem for start in starts[3:])
    assert len({port(start) for start in starts}) == len(starts)


def test_the_pair_is_started_again_and_the_reference_is_kept(runs: dict[str, Running]) -> None:
    starts = runs[BAD_START].wait().report.servers[3:]
    roles = [start.role for start in starts]
    assert roles == ["prefill", "decode", "reference", "prefill", "decode"]


def test_a_port_taken_twice_is_the_machines_fault(runs: dict[str, Running]) -> None:
    ended = runs["decode:port_in_use:2"].wait()
    (cell,) = cells(ended).values()
    assert cell.verdict is Verdict.ERROR, cell.message
    assert "already in use" in cell.message
    assert ended.code == 3


def test_a_server_that_hangs_at_start_is_given_up(runs: dict[str, Running]) -> None:
    ended = runs["decode:hang_at_start"].wait()
    first, other = cells(ended).values()
    assert first.verdict is Verdict.FAIL, first.message
    assert "does not say why: it hangs with" in first.message
    assert "was not ready within 6 s" in first.message
    assert "--start-timeout" in first.message
    assert other.verdict is Verdict.NOT_RUN
    assert ended.code == 1


def cells(ended: Ended) -> dict[str, Cell]:
    """The cells of the one connector, by check."""
    return {cell.check: cell for cell in ended.report.connectors[0].cells}


def verdicts(ended: Ended) -> dict[str, str]:
    """Their verdicts."""
    return {check: str(cell.verdict) for check, cell in cells(ended).items()}


def port(start: ServerStart) -> str:
    """The port that a server was started on."""
    return start.command[start.command.index("--port") + 1]
