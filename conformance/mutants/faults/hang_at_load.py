"""The load never returns."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

from conformance.mutants.fault import Fault


class HangAtLoad(Fault):
    """Decode's load of a request's KV never returns."""

    ends_servers = True
    red = ("transfer/completion",)
    green = ("start/ready",)

    def load(self, requests: list[str], start: Callable[[], None]) -> None:
        if requests:
            Event().wait()
        start()
