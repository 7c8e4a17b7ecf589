"""Endpoints on scripted pairs: healthy, and each broken in a way that its check has to see."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.evidence import Outcome, Rung
from conformance.scripted.faults import tied
from conformance.scripted.suite import Ended, Suite
from conformance.verdict import Verdict

pytestmark = pytest.mark.timeout(500)

CONNECTORS = ("example", "nixl")
BOTH = ("--connector", "example", "--connector", "nixl", "--feature", "endpoints", "--keep-going")
TRANSFER = [
    f"endpoints/transfer/{endpoint}, {mode}"
    for endpoint in ("responses", "messages", "generate")
    for mode in ("unstreamed", "streamed")
]
# Faults by the cell that has to see them; none of them is seen by another cell.
FAULTS = {
    "endpoints/transfer/responses, unstreamed": "decode:claim",
    "endpoints/transfer/responses, streamed": "no_done",
    "endpoints/transfer/messages, unstreamed": "decode:wrong_kv",
    "endpoints/transfer/messages, streamed": "decode:usage_completion",
    "endpoints/transfer/generate, unstreamed": "prefill:no_params",
    "endpoints/transfer/generate, streamed": "decode:recompute",
    "endpoints/list-prompt/unstreamed": "first_for_all",
    "endpoints/list-prompt/streamed": "decode:recompute",
    "endpoints/batch-chat": "decode:mixed_up",
}
MORE = {
    "endpoints/transfer/responses, unstreamed": "forgets_params",
    "endpoints/transfer/messages, unstreamed": "decode:usage_prompt",
    "endpoints/transfer/generate, unstreamed": "no_scale_out",
    "endpoints/transfer/messages, streamed": "no_endpoint",
    "endpoints/list-prompt/unstreamed": "decode:one_prompt",
    "endpoints/list-prompt/streamed": "first_for_all",
    "endpoints/batch-chat": "decode:wrong_kv",
}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    made = Suite(tmp_path_factory.mktemp("endpoints"))
    yield made
    assert made.left_behind() == []


@pytest.fixture(scope="module")
def runs(suite: Suite) -> dict[str, Ended]:
    """A healthy run and two with faults, at the same time."""
    started = {
        name: suite.start(*BOTH, fault=tied(faults), name=name)
        for name, faults in {"healthy": {}, "faults": FAULTS, "more": MORE}.items()
    }
    return {name: run.wait() for name, run in started.items()}


def outcomes(ended: Ended, connector: str, cell: str) -> set[Rung]:
    """The steps of the one proof that did not hold."""
    (proof,) = ended.cell(connector, cell).evidence.proofs
    return {step.name for step in proof.steps if step.outcome is not Outcome.HELD}


@pytest.mark.parametrize("connector", CONNECTORS)
def test_every_endpoint_of_a_healthy_pair_transfers(runs: dict[str, Ended], connector: str) -> None:
    ended = runs["healthy"]
    for cell in (*TRANSFER, "endpoints/list-prompt/unstreamed", "endpoints/list-prompt/streamed"):
        found = ended.cell(connector, cell)
        assert found.verdict is Verdict.PASS, (cell, found.message)
        assert found.evidence.reached is Rung.CONTROL


def test_a_batch_transfers_where_nothing_has_to_be_handed_over(runs: dict[str, Ended]) -> None:
    assert runs["healthy"].cell("example", "endpoints/batch-chat").verdict is Verdict.PASS
    dropped = runs["healthy"].cell("nixl", "endpoints/batch-chat")
    assert dropped.verdict is Verdict.UNSUPPORTED
    assert "takes no kv_transfer_params" in dropped.message
    assert dropped.evidence.facts


@pytest.mark.parametrize("connector", CONNECTORS)
def test_kv_that_is_not_used_or_not_right_shows_on_every_endpoint(
    runs: dict[str, Ended], connector: str
) -> None:
    ended = runs["faults"]
    claimed = "endpoints/transfer/responses, unstreamed"
    assert ended.cell(connector, claimed).verdict is Verdict.DEGRADED
    assert outcomes(ended, connector, claimed) == {Rung.CAUSALITY}
    damaged = ended.cell(connector, "endpoints/transfer/messages, unstreamed")
    assert damaged.verdict is Verdict.FAIL
    assert "not the reference's answer" in damaged.message
    assert "character" in damaged.message
    for cell in ("endpoints/transfer/generate, streamed", "endpoints/list-prompt/streamed"):
        recomputed = ended.cell(connector, cell)
        assert recomputed.verdict is Verdict.DEGRADED
        assert "decode recomputed the rest" in recomputed.message


def test_an_endpoint_that_drops_the_params_is_a_failure(runs: dict[str, Ended]) -> None:
    returned = runs["faults"].cell("nixl", "endpoints/transfer/generate, unstreamed")
    assert returned.verdict is Verdict.FAIL
    assert "kv_transfer_params=None" in returned.message
    dropped = runs["more"].cell("nixl", "endpoints/transfer/responses, unstreamed")
    assert dropped.verdict is Verdict.FAIL
    assert "kv_transfer_params=None" in dropped.message
    # A connector without a handoff has no params to lose.
    assert runs["more"].cell("example", dropped.check).verdict is Verdict.PASS


@pytest.mark.parametrize("connector", CONNECTORS)
def test_streams_end_and_usage_counts_on_every_endpoint(
    runs: dict[str, Ended], connector: str
) -> None:
    cut = runs["faults"].cell(connector, "endpoints/transfer/responses, streamed")
    assert cut.verdict is Verdict.FAIL
    for name, cell in (
        ("faults", "endpoints/transfer/messages, streamed"),
        ("more", "endpoints/transfer/messages, unstreamed"),
    ):
        wrong = runs[name].cell(connector, cell)
        assert wrong.verdict is Verdict.FAIL
        assert "tokens in usage" in wrong.message


def test_a_prompt_that_gets_anothers_kv_is_a_failure(runs: dict[str, Ended]) -> None:
    for name, mode in (("faults", "unstreamed"), ("more", "streamed")):
        cell = runs[name].cell("nixl", f"endpoints/list-prompt/{mode}")
        assert cell.verdict is Verdict.FAIL
        assert "got another's answer, and whose, by their positions=[(1, 0)]" in cell.message
        found = outcomes(runs[name], "nixl", cell.check)
        assert found == {Rung.PARITY}


@pytest.mark.parametrize("connector", CONNECTORS)
def test_answers_of_a_batch_in_another_order_are_a_failure(
    runs: dict[str, Ended], connector: str
) -> None:
    cell = runs["faults"].cell(connector, "endpoints/batch-chat")
    assert cell.verdict is Verdict.FAIL
    assert "[(0, 1), (1, 0)]" in cell.message


@pytest.mark.parametrize("connector", CONNECTORS)
def test_an_endpoint_that_is_not_there_is_not_run(runs: dict[str, Ended], connector: str) -> None:
    for cell, status in (
        ("endpoints/transfer/generate, unstreamed", 403),
        ("endpoints/transfer/messages, streamed", 404),
    ):
        found = runs["more"].cell(connector, cell)
        assert found.verdict is Verdict.NOT_RUN
        assert f"is not offered: HTTP {status}" in found.message


@pytest.mark.parametrize("connector", CONNECTORS)
def test_a_clear_refusal_of_several_prompts_is_unsupported(
    runs: dict[str, Ended], connector: str
) -> None:
    cell = runs["more"].cell(connector, "endpoints/list-prompt/unstreamed")
    assert cell.verdict is Verdict.UNSUPPORTED
    assert "Several prompts are not supported" in cell.message
