"""The second load ends the engine."""

from __future__ import annotations

from collections.abc import Callable

from conformance.mutants.fault import Fault


class CrashOnSecond(Fault):
    """Decode's second load raises, which ends the engine."""

    ends_servers = True
    red = ("transfer/completion",)
    green = ("start/ready",)

    def __init__(self) -> None:
        self._loads = 0

    def load(self, requests: list[str], start: Callable[[], None]) -> None:
        self._loads += bool(requests)
        if self._loads > 1:
            raise RuntimeError("the second load fails, as it was asked to")
        start()
