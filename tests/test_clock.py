"""Where the time of a run goes: overlapping spans count once, the harness is the rest."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier, Thread

import pytest

from conformance import clock as module
from conformance.clock import RunClock

Wait = Callable[[float], None]


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Wait:
    """Lets time pass, on a clock that stands still otherwise."""
    now = [1000.0]

    def passed(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return passed


def split(clock: RunClock) -> tuple[float, float, float, float]:
    timing = clock.timing()
    return timing.wall_s, timing.startup_s, timing.request_s, timing.harness_s


def test_time_outside_of_spans_is_the_harness(wait: Wait) -> None:
    clock = RunClock()
    wait(2)
    with clock.span("request"):
        wait(3)
    wait(4)
    assert split(clock) == (9, 0, 3, 6)


def test_two_requests_at_once_count_once(wait: Wait) -> None:
    clock = RunClock()
    with clock.span("request"):
        wait(1)
        with clock.span("request"):
            wait(2)
        wait(3)
    assert split(clock) == (6, 0, 6, 0)


def test_both_kinds_at_once_count_for_both_and_never_for_the_harness(wait: Wait) -> None:
    clock = RunClock()
    with clock.span("startup"):
        wait(1)
        with clock.span("request"):
            wait(5)
    wait(2)
    assert split(clock) == (8, 6, 5, 2)


def test_a_span_that_raises_is_closed(wait: Wait) -> None:
    def failing() -> None:
        with clock.span("startup"):
            wait(3)
            raise ValueError

    clock = RunClock()
    with pytest.raises(ValueError):
        failing()
    wait(4)
    assert split(clock) == (7, 3, 0, 4)


def test_an_open_span_is_counted_up_to_now(wait: Wait) -> None:
    clock = RunClock()
    with clock.span("request"):
        wait(1.5)
        assert split(clock) == (1.5, 0, 1.5, 0)
        wait(1.5)
        assert split(clock) == (3, 0, 3, 0)


def test_asking_twice_counts_nothing_twice(wait: Wait) -> None:
    clock = RunClock()
    wait(2)
    assert split(clock) == split(clock) == (2, 0, 0, 2)


def test_seconds_are_rounded_to_milliseconds(wait: Wait) -> None:
    clock = RunClock()
    wait(0.1234567)
    assert split(clock) == (0.123, 0, 0, 0.123)


def test_server_starts_are_reported(wait: Wait) -> None:
    clock = RunClock()
    clock.server_starts += 3
    assert clock.timing().server_starts == 3


def test_spans_of_several_threads_overlap(wait: Wait) -> None:
    clock = RunClock()
    opened, closing = Barrier(5), Barrier(5)

    def request() -> None:
        with clock.span("request"):
            opened.wait(10)
            closing.wait(10)

    threads = [Thread(target=request) for _ in range(4)]
    for thread in threads:
        thread.start()
    opened.wait(10)
    wait(7)
    closing.wait(10)
    for thread in threads:
        thread.join()
    wait(1)
    assert split(clock) == (8, 0, 7, 1)
