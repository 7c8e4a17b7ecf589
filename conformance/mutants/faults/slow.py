"""Ten times slower than computing the prompt would be."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

from conformance.mutants.fault import UNRELATED, Fault

SECONDS = 3.0


class Slow(Fault):
    """Each load takes more than ten times as long as decode would need to compute the prompt."""

    red = ("transfer/in-time",)
    green = UNRELATED

    def load(self, requests: list[str], start: Callable[[], None]) -> None:
        if requests:
            Event().wait(SECONDS)
        start()
