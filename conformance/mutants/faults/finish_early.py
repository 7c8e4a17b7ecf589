"""Said to be there before it is."""

from __future__ import annotations

from collections.abc import Callable

from conformance.mutants.fault import Fault

STEPS_LATE = 3


class FinishEarly(Fault):
    """KV is said to have arrived at once, and arrives some steps later."""

    over = ("nixl",)
    red = ("transfer/completion", "length/2B")
    green = ("start/ready",)

    def __init__(self) -> None:
        self._waiting: list[tuple[int, Callable[[], None]]] = []
        self._said: set[str] = set()
        self._say: set[str] = set()

    def load(self, requests: list[str], start: Callable[[], None]) -> None:
        due = [begin for left, begin in self._waiting if not left]
        self._waiting = [(left - 1, begin) for left, begin in self._waiting if left]
        for begin in due:
            begin()
        if not requests:
            start()
            return
        self._waiting.append((STEPS_LATE, start))
        self._say |= set(requests)

    def received(self, requests: set[str]) -> set[str]:
        early, self._say = self._say, set()
        truly = requests - self._said
        self._said = (self._said | early) - requests
        return truly | early
