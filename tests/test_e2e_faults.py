"""Pairs broken on purpose: each fault gets the verdict and the exit code that it deserves.

The runs go on side by side and are waited for where they are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fake.suite import Ended, Running, Suite

from conformance import metrics
from conformance.evidence import Outcome, Rung
from conformance.verdict import Verdict

pytestmark = pytest.mark.timeout(300)

BOTH = ("--connector", "example", "--connector", "nixl", "--check", "transfer/completion")
NIXL = ("--connector", "nixl", "--check", "transfer/completion")
STREAM = ("--connector", "nixl", "--check", "streaming/answer")
RUNS = {
    "decode:recompute": BOTH,
    "decode:claim": BOTH,
    "decode:wrong_kv": BOTH,
    "prefill:no_params": NIXL,
    "decode:foreign": NIXL,
    "decode:empty_text": NIXL,
    "decode:no_done": STREAM,
}
SLOW_TO_COUNT = "prefill:late:40,decode:late:40"


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    made = Suite(tmp_path_factory.mktemp("faults"))
    yield made
    assert made.left_behind() == []


@pytest.fixture(scope="module")
def runs(suite: Suite) -> dict[str, Running]:
    """Every run of this file, started."""
    return {
        fault: suite.start(*arguments, fault=fault, name=fault.split(":")[1])
        for fault, arguments in RUNS.items()
    }


@pytest.mark.parametrize("connector", ["example", "nixl"])
def test_a_recomputing_decode_is_degraded(runs: dict[str, Running], connector: str) -> None:
    ended = runs["decode:recompute"].wait()
    cell = ended.cell(connector, "transfer/completion")
    assert cell.verdict is Verdict.DEGRADED
    assert "external=0 of 40 tokens" in cell.message
    assert outcomes(ended, connector)[Rung.PARITY] is Outcome.HELD
    assert ended.code == 1


@pytest.mark.parametrize("connector", ["example", "nixl"])
def test_a_claimed_transfer_is_seen_by_causality_alone(
    runs: dict[str, Running], connector: str
) -> None:
    ended = runs["decode:claim"].wait()
    assert ended.cell(connector, "transfer/completion").verdict is Verdict.DEGRADED
    wrong = {k for k, v in outcomes(ended, connector).items() if v is not Outcome.HELD}
    assert wrong == {Rung.CAUSALITY}
    assert ended.code == 1


@pytest.mark.parametrize("connector", ["example", "nixl"])
def test_kv_damaged_on_the_way_is_seen_by_parity(runs: dict[str, Running], connector: str) -> None:
    ended = runs["decode:wrong_kv"].wait()
    cell = ended.cell(connector, "transfer/completion")
    assert cell.verdict is Verdict.FAIL
    assert "not the reference's answer" in cell.message
    assert outcomes(ended, connector)[Rung.ACCOUNTING] is Outcome.HELD
    assert ended.code == 1


def test_prefill_without_params_is_a_failure_and_no_fallback(runs: dict[str, Running]) -> None:
    ended = runs["prefill:no_params"].wait()
    cell = ended.cell("nixl", "transfer/completion")
    assert cell.verdict is Verdict.FAIL
    assert "kv_transfer_params=None" in cell.message
    assert ended.code == 1
    decode_log = next((ended.folder / "logs").glob("*-decode.log")).read_text()
    assert decode_log.count("POST /v1/completions") == 1  # that of the start


def test_foreign_traffic_is_a_harness_error(runs: dict[str, Running]) -> None:
    ended = runs["decode:foreign"].wait()
    cell = ended.cell("nixl", "transfer/completion")
    assert cell.verdict is Verdict.ERROR
    assert "other traffic is on this server" in cell.message
    assert ended.code == 3


def test_an_answer_without_tokens_is_a_failure(runs: dict[str, Running]) -> None:
    ended = runs["decode:empty_text"].wait()
    cell = ended.cell("nixl", "transfer/completion")
    assert cell.verdict is Verdict.FAIL
    assert "nothing to compare" in cell.message
    assert ended.code == 1


def test_a_stream_without_its_end_is_a_failure(runs: dict[str, Running]) -> None:
    ended = runs["decode:no_done"].wait()
    assert set(ended.verdicts().values()) == {Verdict.FAIL}
    assert "[DONE]" in ended.cell("nixl", "streaming/answer/chat").message


def test_a_failing_cell_is_replayed_alone(suite: Suite, runs: dict[str, Running]) -> None:
    failed = runs["decode:wrong_kv"].wait()
    folder = failed.folder / "replays" / "nixl_transfer_completion"
    again = suite.command(
        "replay", str(failed.folder), "nixl/transfer/completion", folder=folder
    ).wait()
    assert again.verdicts() == {"nixl/transfer/completion": Verdict.PASS}  # the fault is gone
    assert again.code == 0
    assert again.report.seed == failed.report.seed
    cell = failed.cell("nixl", "transfer/completion")
    assert cell.replay.startswith("kv-conformance run --connector nixl --check 'transfer/comp")
    assert cell.log_excerpt


def test_counters_that_never_settle_are_a_harness_error(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "SETTLE_LIMIT_S", 1.5)
    ended = suite.run(*NIXL, fault="decode:never_settle", name="never_settle")
    cell = ended.cell("nixl", "transfer/completion")
    assert cell.verdict is Verdict.ERROR
    assert "counters did not settle" in cell.message
    assert ended.code == 3


def test_servers_that_count_late_are_waited_for(suite: Suite) -> None:
    ended = suite.run(*BOTH, "--check", "shared-prefix/uneven", fault=SLOW_TO_COUNT, name="late")
    assert set(ended.verdicts().values()) == {Verdict.PASS}, ended.out
    assert ended.code == 0


def outcomes(ended: Ended, connector: str) -> dict[Rung, Outcome]:
    """What each step of the one proof showed."""
    (proof,) = ended.cell(connector, "transfer/completion").evidence.proofs
    return {step.name: step.outcome for step in proof.steps}
