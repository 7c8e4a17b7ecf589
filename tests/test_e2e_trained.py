"""Checks with a trained model, and of unequal ranks: healthy and broken, on scripted servers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.models import recipes
from conformance.scripted.faults import tied
from conformance.scripted.suite import Running, Suite, asking
from conformance.verdict import Verdict

pytestmark = pytest.mark.timeout(500)

PASS, FAIL, DEGRADED = Verdict.PASS, Verdict.FAIL, Verdict.DEGRADED
# Fault, verdict and a part of the message, by cell.
BROKEN: dict[str, tuple[str, Verdict, str]] = {
    "real-model/transfer": ("decode:claim", DEGRADED, "another prompt's KV"),
    "real-model/token-ids": ("decode:wrong_kv", FAIL, "not the reference's answer"),
    "real-model/json-schema": ("decode:recompute", DEGRADED, "external=0"),
    "topology/tensor-parallel/TP2-TP1": ("decode:half", DEGRADED, "recomputed the rest"),
}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    made = Suite(tmp_path_factory.mktemp("trained"))
    made.pretend_built(*recipes())
    yield made
    assert made.left_behind() == []


@pytest.fixture(scope="module")
def runs(suite: Suite) -> Iterator[dict[str, Running]]:
    """Both runs of this file, started."""
    chosen = ("--connector", "nixl", "--real-model", "all", "--keep-going", *asking(BROKEN))
    made = {
        "healthy": suite.start(*chosen, name="healthy"),
        "broken": suite.start(*chosen, fault=tied(BROKEN), name="broken"),
    }
    yield made
    for running in made.values():
        running.wait()


def test_all_pass_on_a_healthy_pair(runs: dict[str, Running]) -> None:
    ended = runs["healthy"].wait()
    assert ended.verdicts() == {f"nixl/{cell}": PASS for cell in BROKEN}, ended.out
    assert ended.code == 0


@pytest.mark.parametrize("cell", BROKEN)
def test_each_goes_red_by_a_fault(runs: dict[str, Running], cell: str) -> None:
    _, verdict, words = BROKEN[cell]
    seen = runs["broken"].wait().cell("nixl", cell)
    assert seen.verdict is verdict, seen.message
    assert words in seen.message
