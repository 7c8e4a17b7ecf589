"""Usage and metrics on scripted pairs: healthy, and broken in ways that the checks have to see."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.scripted.faults import tied
from conformance.scripted.suite import Ended, Suite, asking
from conformance.verdict import Verdict

pytestmark = pytest.mark.timeout(500)

CONNECTORS = ("example", "nixl")
BOTH = ("--connector", "example", "--connector", "nixl", "--feature", "usage", "--keep-going")
# By the cell that has to see it: the fault, and what the cell says of it.
FAULTS = {
    "usage/counts/chat, unstreamed": ("prefill:usage_prompt", "usage of the prefill leg"),
    "usage/counts/chat, streamed": ("decode:stream_usage", "usage of the last chunk"),
    "usage/counts/chat, continuous": ("decode:stuck_usage", "usage of chunk 1"),
    "usage/counts/chat, not asked for": (
        "decode:usage_unasked",
        "of decode with usage that was not",
    ),
    "usage/counts/completions, unstreamed": ("decode:usage_total", "usage of the decode leg"),
    "usage/counts/completions, streamed": (
        "decode:usage_none",
        "positions of chunks of decode with usage",
    ),
    "usage/counts/completions, continuous": ("decode:usage_prompt", "usage of the last chunk"),
    "usage/counts/completions, not asked for": ("decode:recompute", "decode recomputed"),
    "usage/cached-tokens/chat, unstreamed": ("decode:all_cached", "cached_tokens of the decode"),
    "usage/cached-tokens/chat, streamed": ("prefill:all_cached", "cached_tokens of the prefill"),
    "usage/counters/unstreamed": ("decode:counts_twice", "counters of decode"),
    "usage/counters/streamed": ("prefill:loses_count", "counters of prefill"),
    "usage/computed-tokens": ("decode:computed_less_cached", "computed_tokens_sum on decode"),
    "usage/metrics/in flight": ("decode:metrics_busy", "/metrics of decode answers HTTP 500"),
    "usage/metrics/after an error": ("prefill:metrics_refused", "/metrics of prefill answers HTTP"),
    "usage/connector-metrics": ("decode:metrics_garbage", "/metrics of decode cannot be parsed"),
}
MORE = {
    "usage/counts/chat, unstreamed": ("decode:usage_completion", "usage of the decode leg"),
    "usage/counts/chat, streamed": ("prefill:stream_usage", "usage of the last chunk of prefill"),
    "usage/counts/chat, not asked for": ("prefill:usage_unasked", "of prefill, asked"),
    "usage/counters/unstreamed": ("decode:hits_twice", "looked up in the connector and found"),
    "usage/counters/streamed": ("decode:recompute", "decode recomputed"),
    "usage/metrics/in flight": ("decode:metrics_fall", "counters that fell on decode"),
    "usage/metrics/after an error": ("decode:counts_refused", "counted of a refused request"),
    "usage/connector-metrics": ("decode:metrics_forget", "vanished from /metrics of decode"),
}
LAST = {
    "usage/metrics/in flight": ("decode:metrics_idle", "showed while one was in flight"),
    "usage/connector-metrics": ("decode:metrics_frozen", "should grow with a transfer"),
}
# What only a connector with a handoff, or with series of its own, can have.
OF_NIXL = {"decode:metrics_forget", "decode:metrics_frozen"}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    made = Suite(tmp_path_factory.mktemp("counts"))
    yield made
    assert made.left_behind() == []


@pytest.fixture(scope="module")
def runs(suite: Suite) -> dict[str, Ended]:
    """A healthy run and those with faults, two at a time."""
    ended = {}
    for pair in ({"healthy": {}, "faults": FAULTS}, {"more": MORE, "last": LAST}):
        started = {
            name: suite.start(*BOTH, *asking(faults), fault=tied(faults), name=name)
            for name, faults in pair.items()
        }
        ended |= {name: run.wait() for name, run in started.items()}
    return ended


@pytest.mark.parametrize("connector", CONNECTORS)
def test_a_healthy_pair_counts_right(runs: dict[str, Ended], connector: str) -> None:
    column = runs["healthy"].report.connector(connector)
    assert column is not None
    assert {cell.check for cell in column.cells} >= set(FAULTS)
    wrong = {cell.check: cell.message for cell in column.cells if cell.verdict != Verdict.PASS}
    assert not wrong


@pytest.mark.parametrize("connector", CONNECTORS)
@pytest.mark.parametrize(("name", "faults"), [("faults", FAULTS), ("more", MORE), ("last", LAST)])
def test_every_wrong_count_is_seen(
    runs: dict[str, Ended], name: str, faults: dict[str, tuple[str, str]], connector: str
) -> None:
    for check, (fault, words) in faults.items():
        if fault in OF_NIXL and connector != "nixl":
            continue
        cell = runs[name].cell(connector, check)
        red = Verdict.DEGRADED if fault.endswith("recompute") else Verdict.FAIL
        assert cell.verdict is red, (check, cell.verdict, cell.message)
        assert words in cell.message, check


def test_a_falling_counter_is_named_with_its_values(runs: dict[str, Ended]) -> None:
    message = runs["more"].cell("nixl", "usage/metrics/in flight").message
    assert "vllm:generation_tokens_total" in message
    assert "-> 0" in message


def test_decode_tells_what_prefill_had_cached(runs: dict[str, Ended]) -> None:
    facts = runs["healthy"].cell("nixl", "usage/cached-tokens/chat, unstreamed").evidence.facts
    cold, again = (fact.seen for fact in facts)
    assert (cold["P"], cold["D"], cold["handed over"]) == (0, 0, 0)
    assert cold["D counted"] > 0
    assert again["D"] == again["handed over"] == again["P"] > 0
    plain = runs["healthy"].cell("example", "usage/cached-tokens/chat, unstreamed").evidence.facts
    assert plain[0].seen["handed over"] is None
    assert plain[0].seen["D"] == plain[0].seen["D counted"] > 0
