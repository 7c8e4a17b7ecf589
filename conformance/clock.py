"""Where the wall time of a run goes: servers starting, requests in flight, or us."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from conformance.report import Timing

Kind = Literal["startup", "request"]


class RunClock:
    """Adds up, per kind, the seconds during which at least one span of it was open.

    Two requests at once count once. ``harness_s`` is the wall time in which neither kind was
    open, so it cannot be made small by running things at the same time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._began = self._last = time.monotonic()
        self._open: Counter[Kind] = Counter()
        self._spent: dict[str, float] = {"startup": 0.0, "request": 0.0, "harness": 0.0}
        self.server_starts = 0

    @contextmanager
    def span(self, kind: Kind) -> Iterator[None]:
        """Time inside the block belongs to ``kind``."""
        self._move(kind, +1)
        try:
            yield
        finally:
            self._move(kind, -1)

    def timing(self) -> Timing:
        """The split up to now."""
        with self._lock:
            self._settle()
            spent = {f"{kind}_s": round(seconds, 3) for kind, seconds in self._spent.items()}
            wall = round(self._last - self._began, 3)
            return Timing(wall_s=wall, server_starts=self.server_starts, **spent)

    def _move(self, kind: Kind, step: int) -> None:
        with self._lock:
            self._settle()
            self._open[kind] += step

    def _settle(self) -> None:
        now = time.monotonic()
        passed, self._last = now - self._last, now
        busy: list[str] = [kind for kind, count in self._open.items() if count > 0]
        for kind in busy or ["harness"]:
            self._spent[kind] += passed
