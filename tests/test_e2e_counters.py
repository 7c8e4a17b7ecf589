"""Servers whose counters come late, come never, or count somebody else's requests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance import metrics
from conformance.scripted.suite import Running, Suite, asking
from conformance.verdict import Verdict

pytestmark = pytest.mark.timeout(500)

FAULTS = "decode:foreign@length/B,decode:never_settle@length/2B"
LENGTHS = ("length/B", "length/B+1", "length/2B", "length/2B+1")
LATE = ("transfer/completion", "shared-prefix/uneven/1 block")


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    made = Suite(tmp_path_factory.mktemp("counters"))
    yield made
    assert made.left_behind() == []


@pytest.fixture(scope="module")
def runs(suite: Suite) -> dict[str, Running]:
    """Every run of this file, started."""
    late = suite.start("--connector", "example", *asking(LATE), fault="late:40", name="late")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "SETTLE_LIMIT_S", 1.5)
        wrong = suite.start("--connector", "nixl", *asking(LENGTHS), fault=FAULTS, name="wrong")
    return {"late": late, "wrong": wrong}


def test_counters_that_cannot_be_believed_are_harness_errors(runs: dict[str, Running]) -> None:
    ended = runs["wrong"].wait()
    foreign, unsettled = ended.cell("nixl", "length/B"), ended.cell("nixl", "length/2B")
    assert foreign.verdict is unsettled.verdict is Verdict.ERROR
    assert "other traffic is on this server" in foreign.message
    assert "counters did not settle" in unsettled.message
    assert ended.code == 3


def test_counters_are_believed_again_afterwards(runs: dict[str, Running]) -> None:
    ended = runs["wrong"].wait()
    for check in ("length/B+1", "length/2B+1"):
        cell = ended.cell("nixl", check)
        assert cell.verdict is Verdict.PASS, cell.message


def test_servers_that_count_late_are_waited_for(runs: dict[str, Running]) -> None:
    ended = runs["late"].wait()
    assert set(ended.verdicts().values()) == {Verdict.PASS}, ended.out
    assert ended.code == 0
