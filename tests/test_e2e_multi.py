"""MultiConnector: what its children move, each by itself and all together."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.report import Cell
from conformance.scripted.faults import tied
from conformance.scripted.suite import Running, Suite, asking
from conformance.verdict import Verdict

pytestmark = pytest.mark.timeout(500)

EACH = ("multi/each-child/nixl", "multi/each-child/example")
TOGETHER = "multi/one-child-knows"
# What is wrong with each pair. The fault of one cell leaves the others of its pair alone.
FAULTS = {
    "healthy": {},
    "idle": {"": "prefill:idle_child"},
    "told": {EACH[0]: "decode:recompute", TOGETHER: "decode:hits_twice"},
    "loaded": {EACH[1]: "decode:wrong_kv", TOGETHER: "decode:recompute"},
}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    made = Suite(tmp_path_factory.mktemp("multi"))
    yield made
    assert made.left_behind() == []


@pytest.fixture(scope="module")
def runs(suite: Suite) -> dict[str, Running]:
    """Every run of this file, started."""
    asked = ("--connector", "multi-nixl-example", "--keep-going", *asking((*EACH, TOGETHER)))
    return {
        name: suite.start(*asked, fault=tied(faults), name=name) for name, faults in FAULTS.items()
    }


def _cells(run: Running) -> list[Cell]:
    ended = run.wait()
    return [ended.cell("multi-nixl-example", check) for check in (*EACH, TOGETHER)]


def test_children_that_all_move_kv_pass(runs: dict[str, Running]) -> None:
    ended = runs["healthy"].wait()
    assert set(ended.verdicts().values()) == {Verdict.PASS}, ended.out
    assert ended.code == 0


def test_a_child_that_saves_nothing_is_seen_behind_one_that_does(runs: dict[str, Running]) -> None:
    first, last, together = _cells(runs["idle"])
    assert (first.verdict, last.verdict) == (Verdict.PASS, Verdict.DEGRADED)
    assert "external=0 of" in last.message
    assert together.verdict is Verdict.DEGRADED
    assert "example-store (prefill): 0" in together.message


def test_hits_that_are_counted_for_every_child_are_seen(runs: dict[str, Running]) -> None:
    first, last, together = _cells(runs["told"])
    assert (first.verdict, last.verdict) == (Verdict.DEGRADED, Verdict.PASS)
    assert together.verdict is Verdict.FAIL
    assert "tokens looked up in the connector and found" in together.message


def test_a_child_that_loads_wrongly_or_not_at_all_is_seen(runs: dict[str, Running]) -> None:
    first, last, together = _cells(runs["loaded"])
    assert (first.verdict, last.verdict) == (Verdict.PASS, Verdict.FAIL)
    assert together.verdict is Verdict.DEGRADED
