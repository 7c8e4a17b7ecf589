"""Finished stores are waited for: until their count has grown and is steady, and no longer."""

from __future__ import annotations

import time

import pytest

from conformance import stores
from conformance.metrics import Counters, parse
from conformance.profile import Settle
from conformance.stores import STEADY_READINGS, Stores

SETTLE = Settle(metric="stored_total", labels={"operation": "put"})


class Scripted:
    """A server whose count of stores follows a script; the last number stays."""

    def __init__(self, *counts: float) -> None:
        self._left = list(counts)
        self.readings = 0

    def counters(self) -> Counters:
        self.readings += 1
        now = self._left.pop(0) if len(self._left) > 1 else self._left[0]
        # The other series grows all the time, and is not asked for.
        return parse(
            f'stored_total{{operation="put",engine="0"}} {now}\n'
            f'stored_total{{operation="get",engine="0"}} {self.readings}\n'
        )


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "POLL_S", 0.001)


def readings_until_settled(*counts: float) -> int:
    """How many readings it took, the one from before the request not counted."""
    source = Scripted(*counts)
    Stores.on(source, SETTLE).wait()
    return source.readings - 1


def test_a_store_that_is_counted_late_is_waited_for() -> None:
    late = readings_until_settled(3, 3, 3, 3, 3, 3, 3, 3, 3, 4)
    assert late == 8 + 1 + STEADY_READINGS


def test_a_store_that_is_counted_in_parts_is_waited_for_to_its_end() -> None:
    whole = readings_until_settled(3, 4, 4, 5, 5, 5, 6)
    assert whole == 5 + 1 + STEADY_READINGS


def test_a_count_of_before_is_no_store_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "LIMIT_S", 0.2)
    source = Scripted(3)
    before = Stores.on(source, SETTLE)
    began = time.monotonic()
    before.wait()  # a store that never shows is what the check is about: no error here
    assert 0.2 <= time.monotonic() - began < 10
    assert source.readings > 2 + STEADY_READINGS


def test_a_count_that_never_rests_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "LIMIT_S", 0.2)
    source = Scripted(*range(100_000))
    began = time.monotonic()
    Stores.on(source, SETTLE).wait()
    assert 0.2 <= time.monotonic() - began < 10


def test_a_series_that_appears_with_the_first_store_counts_from_zero() -> None:
    class Appears(Scripted):
        def counters(self) -> Counters:
            found = super().counters()
            return found if self.readings > 4 else Counters({})

    source = Appears(1)
    Stores.on(source, SETTLE).wait()
    assert source.readings == 4 + 1 + STEADY_READINGS
