"""Pairs broken on purpose: each fault gets the verdict that it deserves, and no other cell does.

Faults are tied to checks, so that one run shows them all.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import pytest

from conformance.evidence import Outcome, Rung
from conformance.scripted.faults import tied
from conformance.scripted.suite import Ended, Suite, asking
from conformance.verdict import Verdict

pytestmark = pytest.mark.timeout(500)

BOTH = ("--connector", "example", "--connector", "nixl")
KV = {
    "transfer/completion": "decode:recompute",
    "transfer/chat": "decode:claim",
    "length/2B": "decode:wrong_kv",
    "length/3B": "prefill:no_params",
    "streaming/answer/completions": "decode:no_done",
}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    made = Suite(tmp_path_factory.mktemp("faults"))
    yield made
    assert made.left_behind() == []


@pytest.fixture(scope="module")
def kv(suite: Suite) -> Ended:
    """A run with all of them, and with checks that have none."""
    names = (*KV, "length/B+1", "length/2B+1")
    chosen = asking(names)
    return suite.run(*BOTH, *chosen, "--keep-going", fault=tied(KV), name="kv")


@pytest.mark.parametrize("connector", ["example", "nixl"])
def test_a_recomputing_decode_is_degraded(kv: Ended, connector: str) -> None:
    cell = kv.cell(connector, "transfer/completion")
    assert cell.verdict is Verdict.DEGRADED
    assert "external=0 of 40 tokens" in cell.message
    assert outcomes(kv, connector, "transfer/completion")[Rung.PARITY] is Outcome.HELD


@pytest.mark.parametrize("connector", ["example", "nixl"])
def test_a_claimed_transfer_is_seen_by_causality_alone(kv: Ended, connector: str) -> None:
    assert kv.cell(connector, "transfer/chat").verdict is Verdict.DEGRADED
    seen = outcomes(kv, connector, "transfer/chat")
    assert {rung for rung, seen in seen.items() if seen is not Outcome.HELD} == {Rung.CAUSALITY}


@pytest.mark.parametrize("connector", ["example", "nixl"])
def test_kv_damaged_on_the_way_is_seen_by_parity(kv: Ended, connector: str) -> None:
    cell = kv.cell(connector, "length/2B")
    assert cell.verdict is Verdict.FAIL
    assert "not the reference's answer" in cell.message
    assert outcomes(kv, connector, "length/2B")[Rung.ACCOUNTING] is Outcome.HELD


def test_prefill_without_params_is_a_failure_and_no_fallback(kv: Ended) -> None:
    cell = kv.cell("nixl", "length/3B")
    assert cell.verdict is Verdict.FAIL
    assert "kv_transfer_params=None" in cell.message
    assert not cell.evidence.proofs[0].steps
    # A connector without a handoff has no params to lose.
    assert kv.cell("example", "length/3B").verdict is Verdict.PASS


@pytest.mark.parametrize("connector", ["example", "nixl"])
def test_a_stream_without_its_end_is_a_failure(kv: Ended, connector: str) -> None:
    cell = kv.cell(connector, "streaming/answer/completions")
    assert cell.verdict is Verdict.FAIL
    assert "[DONE]" in cell.message


@pytest.mark.parametrize("connector", ["example", "nixl"])
def test_a_fault_costs_no_other_cell_its_verdict(kv: Ended, connector: str) -> None:
    assert kv.cell(connector, "length/B+1").verdict is Verdict.PASS
    assert kv.cell(connector, "length/2B+1").verdict is Verdict.PASS
    assert kv.report.timing.server_starts == 5


def test_a_run_with_failures_is_not_conformant(kv: Ended) -> None:
    assert kv.code == 1
    assert "exit 1: not conformant" in kv.out


def test_a_failing_cell_is_replayed_alone(suite: Suite, kv: Ended) -> None:
    folder = kv.folder / "replays" / "nixl_transfer_completion"
    again = suite.command(
        *("replay", str(kv.folder), "nixl/transfer/completion"),
        fault="decode:recompute",
        folder=folder,
    ).wait()
    assert again.verdicts() == {"nixl/transfer/completion": Verdict.DEGRADED}
    assert again.code == 1, "recomputing alone makes a run not conformant"
    assert again.report.seed == kv.report.seed


def test_a_failing_cell_says_how_to_try_it_again(suite: Suite, kv: Ended) -> None:
    cell = kv.cell("nixl", "length/2B")
    assert cell.log_excerpt
    command = shlex.split(cell.replay)
    assert command[:2] == ["kv-conformance", "run"]
    given = dict(zip(command[2::2], command[3::2], strict=True))
    assert given["--connector"] == "nixl"
    assert given["--check"] == "length/2B"
    assert given["--model"] == str(suite.model)
    assert cell.replay in kv.out


def outcomes(ended: Ended, connector: str, check: str) -> dict[Rung, Outcome]:
    """What each step of the one proof showed."""
    (proof,) = ended.cell(connector, check).evidence.proofs
    return {step.name: step.outcome for step in proof.steps}


def test_what_a_connector_said_before_it_was_done_without_is_told(suite: Suite) -> None:
    ended = suite.run("--connector", "example", *asking(KV), fault="decode:gives_up", name="up")
    cell = ended.cell("example", "transfer/completion")
    assert cell.verdict is Verdict.DEGRADED
    said = "--- decode, before it was ready\nRuntimeError: no connector for this device"
    assert said in (cell.log_excerpt or "")
    assert "prefill, before it was ready" not in (cell.log_excerpt or "")
