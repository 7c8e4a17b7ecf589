"""Sampling on scripted pairs: healthy, and each field broken in a way that its check has to see."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.evidence import Outcome, Rung
from conformance.report import Cell
from conformance.scripted.faults import tied
from conformance.scripted.suite import Ended, Running, Suite, asking
from conformance.verdict import Verdict

pytestmark = pytest.mark.timeout(400)

NIXL = ("--connector", "nixl", "--feature", "sampling", "--keep-going")
BOTH = ("--connector", "example", *NIXL)
# Faults by the cell that has to see them, and what its message says.
FAULTS = {
    "sampling/seed/completions": ("decode:drop_seed", "not the reference's answer"),
    "sampling/seed/chat": ("decode:drop_seed", "not the reference's answer"),
    "sampling/seed/top-p and top-k": ("decode:drop_top_k", "not the reference's answer"),
    "sampling/penalty/presence": ("decode:counts_first", "not the reference's answer"),
    "sampling/penalty/frequency": ("decode:counts_first", "not the reference's answer"),
    "sampling/penalty/repetition": ("decode:forgets_prompt", "not the reference's answer"),
    "sampling/logit-bias": ("decode:drop_logit_bias", "the answer should be without"),
    "sampling/bad-words": ("decode:drop_bad_words", "the answer should change"),
    "sampling/allowed-tokens": ("decode:drop_allowed_token_ids", "should be of allowed tokens"),
    "sampling/min-tokens": ("decode:drop_min_tokens", "tokens of the answer should be at least 8"),
    "sampling/max-tokens-1": ("decode:drop_max_tokens", "finish_reason=|completion_tokens=16"),
    "sampling/ignore-eos": ("decode:drop_ignore_eos", "finish_reason='stop'"),
    "sampling/stop-string/within, unstreamed": ("decode:drop_stop", "finish_reason and stop"),
    "sampling/stop-string/within, streamed": ("decode:drop_stop", "finish_reason and stop"),
    "sampling/stop-string/across tokens, unstreamed": ("decode:wrong_kv", "finish_reason and"),
    "sampling/stop-string/across tokens, streamed": ("decode:leaks_stop", "text until"),
    "sampling/stop-string/included, unstreamed": (
        "decode:drop_include_stop_str_in_output",
        "text until",
    ),
    "sampling/stop-string/included, streamed": (
        "decode:drop_include_stop_str_in_output",
        "text until",
    ),
    "sampling/stop-token/unstreamed": ("decode:drop_stop_token_ids", "finish_reason and stop"),
    "sampling/stop-token/streamed": ("decode:drop_stop_token_ids", "finish_reason and stop"),
    "sampling/first-token-stops/stop token, unstreamed": (
        "prefill:no_params_on_stop",
        "kv_transfer_params=None",
    ),
    "sampling/first-token-stops/stop token, streamed": (
        "decode:drop_stop_token_ids",
        "finish_reason of decode",
    ),
    "sampling/first-token-stops/stop string, unstreamed": (
        "prefill:no_params_on_stop",
        "kv_transfer_params=None",
    ),
    "sampling/first-token-stops/stop string, streamed": ("decode:leaks_stop", "text of an answer"),
    "sampling/first-token-stops/end of sequence, unstreamed": (
        "prefill:no_params_on_stop",
        "kv_transfer_params=None",
    ),
    "sampling/first-token-stops/end of sequence, streamed": (
        "prefill:drop_logit_bias",
        "finish_reason of prefill",
    ),
    "sampling/logprobs/completions": ("decode:few_tops", "likeliest tokens should be 5"),
    "sampling/logprobs/chat": ("decode:few_tops", "likeliest tokens should be 5"),
    "sampling/prompt-logprobs/completions": ("decode:scores_hits", "places of prompt_logprobs"),
    "sampling/prompt-logprobs/chat": ("decode:scores_hits", "places of prompt_logprobs"),
    "sampling/echo/text": ("decode:drop_echo", "should begin with its prompt"),
    "sampling/echo/with log-probabilities": ("decode:drop_echo", "places with log-probabilities"),
    "sampling/n/unstreamed": ("decode:same_choices", "choices that are not the reference's"),
    "sampling/n/streamed": ("decode:same_choices", "choices that are not the reference's"),
    "sampling/best-of": ("decode:best_of", "HTTP 500"),
    "sampling/beam-search": ("decode:one_beam", "choices that are not the reference's"),
}
# Others that the same cells have to see.
MORE = {
    "sampling/min-tokens": ("prefill:drop_min_tokens", "HTTP status of min_tokens"),
    "sampling/n/unstreamed": ("decode:recompute", "external=0"),
    "sampling/best-of": ("decode:refuses_best_of", "best_of is refused: HTTP 400"),
    "sampling/prompt-logprobs/completions": ("prefill:keeps_kv", "prefill should use no more"),
    "sampling/beam-search": ("decode:constant", "choices that are not the reference's"),
}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    made = Suite(tmp_path_factory.mktemp("sampling"))
    yield made
    assert made.left_behind() == []


@pytest.fixture(scope="module")
def runs(suite: Suite) -> Iterator[dict[str, Running]]:
    """A healthy run and two with faults, started."""
    started = {
        "healthy": suite.start(*BOTH, name="healthy"),
        "faults": suite.start(*NIXL, fault=tied(FAULTS), name="faults"),
        "more": suite.start(*NIXL, *asking(MORE), fault=tied(MORE), name="more"),
    }
    yield started
    for run in started.values():
        run.wait()


@pytest.fixture(scope="module")
def healthy(runs: dict[str, Running]) -> Ended:
    return runs["healthy"].wait()


@pytest.fixture(scope="module")
def broken(runs: dict[str, Running]) -> Ended:
    return runs["faults"].wait()


@pytest.fixture(scope="module")
def more(runs: dict[str, Running]) -> Ended:
    return runs["more"].wait()


def test_a_healthy_pair_passes_but_for_what_the_engine_drops(healthy: Ended) -> None:
    found = {k: v for k, v in healthy.verdicts().items() if v != Verdict.PASS}
    assert found == {"nixl/sampling/beam-search": Verdict.UNSUPPORTED}
    assert "to_beam_search_params" in healthy.cell("nixl", "sampling/beam-search").message
    assert healthy.code == 0
    assert len(healthy.verdicts()) == 2 * len(FAULTS)


@pytest.mark.parametrize("connector", ["example", "nixl"])
def test_what_has_to_be_computed_says_why_and_is_still_compared(
    healthy: Ended, connector: str
) -> None:
    cell = healthy.cell(connector, "sampling/prompt-logprobs/completions")
    assert "decode computed all of 37 tokens, as it has to" in cell.message
    outcomes = {s.name: s.outcome for p in cell.evidence.proofs for s in p.steps}
    assert outcomes[Rung.ACCOUNTING] is Outcome.NOT_APPLICABLE
    assert outcomes[Rung.PARITY] is outcomes[Rung.CONTROL] is Outcome.HELD


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_seen(broken: Ended, name: str) -> None:
    _is_seen(broken.cell("nixl", name), FAULTS[name][1])


@pytest.mark.parametrize("name", [name for name in MORE if name != "sampling/best-of"])
def test_each_other_fault_is_seen(more: Ended, name: str) -> None:
    _is_seen(more.cell("nixl", name), MORE[name][1])


def test_a_clear_refusal_is_not_supported_and_no_failure(more: Ended) -> None:
    cell = more.cell("nixl", "sampling/best-of")
    assert (cell.verdict, cell.message.partition(" from")[0]) == (
        Verdict.UNSUPPORTED,
        MORE["sampling/best-of"][1],
    )


def _is_seen(cell: Cell, message: str) -> None:
    assert cell.verdict in (Verdict.FAIL, Verdict.DEGRADED), (cell.verdict, cell.message)
    assert any(part in cell.message for part in message.split("|")), cell.message
