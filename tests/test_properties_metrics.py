"""What holds of every difference of counters, however late a server counts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_metrics import Scripted, reading

from conformance import metrics
from conformance.errors import ForeignTraffic, Unsettled
from conformance.metrics import FINISHED, Counters, Meter, TokenSources

QUICK = settings(deadline=None, database=None, max_examples=50)

keys = st.tuples(
    st.sampled_from(["a_total", "b_total"]),
    st.frozensets(st.tuples(st.just("side"), st.sampled_from("pd")), max_size=1),
)
counters = st.dictionaries(keys, st.integers(0, 2**40).map(float), max_size=4).map(Counters)
# External tokens of each request of ours.
requests = st.lists(st.integers(0, 500), min_size=1, max_size=4)


@contextmanager
def quick(limit_s: float = 10.0) -> Iterator[None]:
    with (
        mock.patch.object(metrics, "SETTLE_POLL_S", 0.0),
        mock.patch.object(metrics, "SETTLE_LIMIT_S", limit_s),
    ):
        yield


def plus(one: Counters, other: Counters) -> Counters:
    every = one.samples.keys() | other.samples.keys()
    return Counters({k: one.samples.get(k, 0.0) + other.samples.get(k, 0.0) for k in every})


@QUICK
@given(counters, counters)
def test_what_is_taken_away_can_be_put_back(before: Counters, now: Counters) -> None:
    delta = now.minus(before)
    assert delta.samples.keys() == now.samples.keys()
    again = plus(delta, before)
    assert {key: again.samples[key] for key in now.samples} == now.samples
    assert plus(now, before).minus(before).samples.items() >= now.samples.items()


@QUICK
@given(counters, counters, counters)
def test_two_stretches_add_up_to_the_whole(first: Counters, more: Counters, last: Counters) -> None:
    middle = plus(first, more)
    end = plus(middle, last)
    assert plus(end.minus(middle), middle.minus(first)) == end.minus(first)
    assert min(end.minus(first).samples.values(), default=0.0) >= 0


@QUICK
@given(counters, st.sampled_from(["a_total", "b_total"]))
def test_a_total_is_the_sum_of_its_series(found: Counters, name: str) -> None:
    parts = [found.total(name, side=side) for side in "pd"]
    bare = found.samples.get((name, frozenset()), 0.0)
    assert found.total(name) == sum(parts) + bare
    assert found.has(name) or found.total(name) == 0


def counted(finished: int, tokens: list[int], done: int) -> Counters:
    """A reading after ``done`` of our requests were counted, on top of earlier ones."""
    return reading(finished + done, 7 * finished + sum(tokens[:done]))


@QUICK
@given(st.integers(0, 9), requests, st.data())
def test_a_meter_sees_all_of_ours_and_nothing_earlier_however_late(
    earlier: int, tokens: list[int], data: st.DataObject
) -> None:
    lags = st.lists(st.integers(0, len(tokens)), max_size=5).map(sorted)
    server = Scripted(
        *(reading(n, 7 * n) for n in range(max(0, earlier - 2), earlier + 1)), answered=earlier
    )
    with quick():
        meter = Meter.on(server)
        steps = [*data.draw(lags), len(tokens)]
        server.after(
            *(counted(earlier, tokens, done) for done in steps), answered=earlier + len(tokens)
        )
        delta = meter.delta()
    assert delta.total(FINISHED) == len(tokens)
    assert TokenSources.of(delta).external == sum(tokens)


@QUICK
@given(st.integers(0, 5), requests, st.data())
def test_a_request_of_somebody_elses_is_never_taken_for_ours(
    earlier: int, tokens: list[int], data: st.DataObject
) -> None:
    before = data.draw(st.lists(st.integers(0, len(tokens) - 1), max_size=3).map(sorted))
    more = data.draw(st.integers(1, 3))
    server = Scripted(counted(earlier, tokens, 0), answered=earlier)
    with quick():
        meter = Meter.on(server)
        script = [counted(earlier, tokens, done) for done in before]
        foreign = reading(earlier + len(tokens) + more, 10**6)
        server.after(*script, foreign, answered=earlier + len(tokens))
        with pytest.raises(ForeignTraffic):
            meter.delta()
    assert server.uncertain


@settings(deadline=None, database=None, max_examples=10)
@given(requests, st.data())
def test_a_request_that_is_never_counted_gives_no_difference(
    tokens: list[int], data: st.DataObject
) -> None:
    done = data.draw(st.integers(0, len(tokens) - 1))
    server = Scripted(counted(0, tokens, 0))
    with quick(limit_s=0.01):
        meter = Meter.on(server)
        server.after(counted(0, tokens, done), answered=len(tokens))
        with pytest.raises(Unsettled):
            meter.delta()
    assert server.uncertain
