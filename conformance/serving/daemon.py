"""A connector's daemon, such as mooncake_master: ready before the servers, stopped after them."""

from __future__ import annotations

import time

import httpx

from conformance.errors import ServerStartError
from conformance.serving.ports import is_open
from conformance.serving.process import Process, ProcessPlan
from conformance.transport import tls

POLL_S = 0.1


class DaemonProcess(Process):
    """One running daemon of a profile, reached at ``port``."""

    def __init__(self, plan: ProcessPlan, port: int, ready_path: str | None, limit_s: float):
        super().__init__(plan)
        self._port = port
        self._ready_path = ready_path
        self._limit_s = limit_s

    def wait_ready(self) -> None:
        """Until it listens, and answers where the profile says so. Raises ServerStartError."""
        deadline = time.monotonic() + self._limit_s
        while not self._ready():
            if not self.alive:
                raise self._failed("died while starting")
            if time.monotonic() > deadline:
                raise self._failed(f"was not ready within {self._limit_s:.0f} s")
            time.sleep(POLL_S)

    def _ready(self) -> bool:
        if not is_open(self._port):
            return False
        if self._ready_path is None:
            return True
        url = f"http://127.0.0.1:{self._port}{self._ready_path}"
        try:
            return httpx.get(url, timeout=5, verify=tls()).status_code == 200
        except httpx.HTTPError:
            return False

    def _failed(self, how: str) -> ServerStartError:
        cause = self.root_cause()
        return ServerStartError(
            f"the {self.plan.what} {how}: {cause.line} [log: {self.plan.log}]",
            cause.line,
            cause.excerpt,
        )
