"""Waits until stored KV can be read, for connectors that store after they have answered."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol

from conformance.metrics import Counters
from conformance.profile import Settle

LIMIT_S = 10.0
POLL_S = 0.02
# A store of several blocks may be counted in parts.
STEADY_READINGS = 5


class _Source(Protocol):
    def counters(self) -> Counters:
        """Every sample of ``/metrics`` now."""


@dataclass(frozen=True)
class Stores:
    """The count of finished stores on one server, from before a request."""

    source: _Source
    settle: Settle
    before: float

    @classmethod
    def on(cls, source: _Source, settle: Settle) -> Stores:
        """As it stands now."""
        return cls(source, settle, _count(source, settle))

    def wait(self) -> None:
        """Until it has grown and is steady. Past the limit the request goes on: a miss shows."""
        deadline = time.monotonic() + LIMIT_S
        steady, last = 0, self.before
        while steady < STEADY_READINGS and time.monotonic() < deadline:
            now = _count(self.source, self.settle)
            steady = steady + 1 if now == last and now > self.before else 0
            last = now
            time.sleep(POLL_S)


def _count(source: _Source, settle: Settle) -> float:
    return source.counters().total(settle.metric, **settle.labels)
