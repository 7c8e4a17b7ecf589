"""Counters: parsed, summed, subtracted, and believed only once they have settled."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance import metrics
from conformance.errors import CountersWentBack, ForeignTraffic, SuiteError
from conformance.metrics import BY_SOURCE, FINISHED, Counters, Meter, TokenSources, parse

PAGE = """\
# HELP vllm:request_success_total Count of successfully processed requests.
# TYPE vllm:request_success_total counter
vllm:request_success_total{engine="0",finished_reason="stop",model_name="tiny"} 2.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="tiny"} 5.0
# TYPE vllm:prompt_tokens_by_source_total counter
vllm:prompt_tokens_by_source_total{engine="0",source="local_compute"} 30.0
vllm:prompt_tokens_by_source_total{engine="0",source="local_cache_hit"} 16.0
vllm:prompt_tokens_by_source_total{engine="0",source="external_kv_transfer"} 64.0
# TYPE vllm:nixl_bytes_transferred histogram
vllm:nixl_bytes_transferred_bucket{engine="0",le="+Inf"} 3.0
vllm:nixl_bytes_transferred_count{engine="0"} 3.0
vllm:nixl_bytes_transferred_sum{engine="0"} 1.5e+06
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="32",cache_dtype="auto",engine="0"} 1.0
"""
KEYS = [(BY_SOURCE, frozenset({("source", s)})) for s in ("local_compute", "external_kv_transfer")]
KEYS += [(FINISHED, frozenset({("finished_reason", r)})) for r in ("stop", "length")]

readings = st.dictionaries(st.sampled_from(KEYS), st.integers(0, 10**9).map(float)).map(Counters)


def reading(finished: int, external: int = 0, moved: float | None = None) -> Counters:
    lines = [f"{FINISHED} {finished}", f'{BY_SOURCE}{{source="external_kv_transfer"}} {external}']
    return parse("\n".join(lines + ([f"moved_sum {moved}"] if moved is not None else [])) + "\n")


class Scripted:
    """A server that gives prepared readings, the last one for good."""

    def __init__(self, *parts: Counters, answered: int = 0, uncertain: bool = False) -> None:
        self._left = list(parts)
        self.answered = answered
        self.uncertain = uncertain

    def counters(self) -> Counters:
        return self._left.pop(0) if len(self._left) > 1 else self._left[0]

    def after(self, *parts: Counters, answered: int) -> None:
        """More requests are answered, and these are the readings from then on."""
        self._left, self.answered = list(parts), answered


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "SETTLE_POLL_S", 0.001)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "SETTLE_LIMIT_S", 0.2)


def test_samples_are_summed_over_the_labels_not_asked_for() -> None:
    page = parse(PAGE)
    assert page.total(FINISHED) == 7
    assert page.total(FINISHED, finished_reason="stop") == 2
    assert page.total(FINISHED, finished_reason="stop", engine="1") == 0
    assert page.total("vllm:nixl_bytes_transferred_sum") == 1.5e6
    assert page.total("vllm:request_success") == page.total("no:such") == 0


def test_a_sample_is_there_or_not() -> None:
    page = parse(PAGE)
    assert page.has("vllm:nixl_bytes_transferred_sum")
    assert not page.has("vllm:nixl_bytes_transferred_total")


def test_block_size_is_the_servers_own() -> None:
    assert parse(PAGE).block_size() == 32


@pytest.mark.parametrize("labels", ["", '{block_size="None"}', '{cache_dtype="auto"}'])
def test_no_block_size_is_an_error_that_names_the_sample(labels: str) -> None:
    with pytest.raises(SuiteError, match="vllm:cache_config_info has no block_size"):
        parse(f"vllm:cache_config_info{labels} 1.0\n").block_size()


def test_a_difference_counts_new_series_from_nothing() -> None:
    old = parse(PAGE)
    new = parse(PAGE.replace("} 2.0", "} 3.0") + 'vllm:late_total{engine="0"} 4.0\n')
    delta = new.minus(old)
    assert delta.total(FINISHED) == delta.total(FINISHED, finished_reason="stop") == 1
    assert delta.total("vllm:late_total") == 4
    assert new.total(FINISHED) == 8


def test_token_sources_are_told_apart_and_add_up() -> None:
    sources = TokenSources.of(parse(PAGE))
    assert sources == TokenSources(local_compute=30, local_cache_hit=16, external=64)
    assert sources.total == 110


@settings(deadline=None, database=None, max_examples=50)
@given(readings, readings)
def test_differences_add_up(one: Counters, other: Counters) -> None:
    assert not any(one.minus(one).samples.values())
    assert one.minus(Counters({})) == one
    grown = Counters({key: other.samples.get(key, 0) + one.samples.get(key, 0) for key in KEYS})
    delta = grown.minus(one)
    assert min(delta.samples.values()) >= 0
    assert [delta.total(name) for name in (FINISHED, BY_SOURCE)] == [
        other.total(name) for name in (FINISHED, BY_SOURCE)
    ]
    by_reason = [other.total(FINISHED, finished_reason=reason) for reason in ("stop", "length")]
    assert sum(by_reason) == other.total(FINISHED)
    assert TokenSources.of(delta).total == other.total(BY_SOURCE)


def test_a_meter_waits_until_the_request_is_counted() -> None:
    server = Scripted(reading(5, 100), answered=5)
    meter = Meter.on(server)
    early, done = reading(5, 100), reading(6, 164)
    server.after(early, early, done, answered=6)
    assert TokenSources.of(meter.delta()).external == 64


def test_counters_that_went_back_are_not_waited_for() -> None:
    server = Scripted(reading(5, 100), answered=5)
    meter = Meter.on(server)
    server.after(reading(1, 64), answered=6)
    with pytest.raises(CountersWentBack, match="went from 5 back to 1"):
        meter.delta()
    assert server.uncertain


def test_a_page_without_counters_is_not_waited_for() -> None:
    gateway = parse("gateway_requests_total 5\n")
    with pytest.raises(SuiteError, match=f"/metrics has no {FINISHED}"):
        Meter.on(Scripted(gateway, uncertain=True))
    server = Scripted(reading(5, 100), answered=5)
    meter = Meter.on(server)
    server.after(gateway, answered=6)
    with pytest.raises(SuiteError, match=f"/metrics has no {FINISHED}"):
        meter.delta()


def test_a_meter_does_not_start_before_earlier_requests_are_counted() -> None:
    server = Scripted(reading(2, 10), reading(2, 10), reading(3, 42), answered=3)
    meter = Meter.on(server)
    server.after(reading(4, 50), answered=4)
    assert TokenSources.of(meter.delta()).external == 8


def test_a_meter_expects_every_request_of_several() -> None:
    server = Scripted(reading(0))
    meter = Meter.on(server)
    server.after(*(reading(n, 10 * n) for n in (1, 1, 1, 2, 3)), answered=3)
    assert meter.delta().total(FINISHED) == 3


def test_foreign_traffic_is_told_at_once() -> None:
    server = Scripted(reading(0))
    meter = Meter.on(server)
    server.after(reading(2), reading(1), answered=1)
    with pytest.raises(ForeignTraffic, match="2 requests finished where 1 of ours"):
        meter.delta()


def test_after_a_failed_request_the_servers_own_count_is_taken_once_it_rests() -> None:
    parts = [reading(7), reading(8), reading(9)]
    server = Scripted(*parts, answered=7, uncertain=True)
    meter = Meter.on(server)
    assert (server.answered, server.uncertain) == (9, False)
    server.after(reading(10, 5), answered=10)
    assert TokenSources.of(meter.delta()).external == 5


def test_a_request_that_became_nobody_knows_how_many_is_counted_by_the_server() -> None:
    server = Scripted(reading(0))
    meter = Meter.on(server)
    server.after(reading(4, 30), reading(7, 60), answered=1)
    server.uncertain = True
    assert TokenSources.of(meter.delta()).external == 60
    assert (server.answered, server.uncertain) == (7, False)


@pytest.mark.usefixtures("impatient")
def test_counters_that_never_account_for_a_request_are_an_error() -> None:
    server = Scripted(reading(0))
    meter = Meter.on(server)
    server.after(reading(0), answered=1)
    with pytest.raises(SuiteError, match=r"request_success_total is 0, .* should be 1"):
        meter.delta()


def test_a_late_sample_is_waited_for() -> None:
    server = Scripted(reading(0))
    meter = Meter.on(server)
    late = [reading(1, 8, moved=0)] * 8 + [reading(1, 8, moved=512)]
    server.after(*late, answered=1)
    assert meter.delta("moved_sum").total("moved_sum") == 512


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("moved", [0.0, None])
def test_a_sample_that_never_moves_is_not_insisted_on(moved: float | None) -> None:
    server = Scripted(reading(0))
    meter = Meter.on(server)
    server.after(reading(1, 8, moved), answered=1)
    delta = meter.delta("moved_sum")
    assert delta.total("moved_sum") == 0
    assert TokenSources.of(delta).external == 8
