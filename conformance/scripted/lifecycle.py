"""vLLM's developer endpoints: caches emptied, the engine paused, put to sleep and woken up."""

from __future__ import annotations

import os
import threading
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

from conformance.scripted.engine import Engine
from conformance.scripted.faults import Faults
from conformance.scripted.log import die

COMMANDS = ("/reset_prefix_cache", "/pause", "/resume", "/sleep", "/wake_up")
POLL_S = 0.01
# A pause is complete once decode has fetched what waits for it, or that has expired.
LEASE_S = 5.0


class Lifecycle:
    """Of one server; ``asynchronous``: how it was told to schedule, ``cache_dtype``: to keep KV."""

    def __init__(self, engine: Engine) -> None:
        self.asynchronous = True
        self.cache_dtype = "auto"
        self._engine = engine
        self._aborts = 0
        self._going_on = threading.Event()
        self._going_on.set()

    def aborted_within(self, seconds: float, begun: int) -> bool:
        """Whether a pause has aborted a request, or does while it takes so long."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self._aborts == begun:
            time.sleep(POLL_S)
        return self._aborts > begun

    def knows(self, path: str, faults: Faults) -> bool:
        """Whether a path is a command."""
        return urlsplit(path).path in COMMANDS and "no_commands" not in faults

    @property
    def paused(self) -> bool:
        """Whether nothing new is scheduled."""
        return not self._going_on.is_set()

    @property
    def aborts(self) -> int:
        """How many pauses have aborted what was under way; later ones abort what begins now."""
        return self._aborts

    def wait(self, faults: Faults) -> None:
        """Until requests are scheduled."""
        if "deaf_to_pause" not in faults:
            self._going_on.wait()

    def command(self, path: str, faults: Faults) -> dict[str, Any]:
        """What a command answers."""
        parts = urlsplit(path)
        given = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path == "/reset_prefix_cache":
            return {"success": self._reset(given.get("reset_external") == "true", faults)}
        if parts.path in ("/pause", "/sleep"):
            self._aborts += given.get("mode", "abort") == "abort"
            self._pause(faults)
            self._engine.slept = parts.path == "/sleep" or self._engine.slept
            return {"status": "paused" if parts.path == "/pause" else "sleeping"}
        self._going_on.set()
        return {"status": "resumed" if parts.path == "/resume" else "awake"}

    def config(self, faults: Faults) -> dict[str, Any]:
        """What ``/server_info`` shows."""
        asynchronous = self.asynchronous and "always_sync" not in faults
        scheduler = {
            "max_num_batched_tokens": 512,
            "async_scheduling": asynchronous or "always_async" in faults,
        }
        dtype = "auto" if "ignores_dtype" in faults else self.cache_dtype
        return {
            "vllm_config": {
                "scheduler_config": scheduler,
                "cache_config": {"cache_dtype": dtype},
            },
            "vllm_env": {} if "ignores_layout" in faults else _variables(),
        }

    def _reset(self, external: bool, faults: Faults) -> bool:
        connector = self._engine.connector
        if "never_free" in faults:
            return False
        if "resets_held" in faults:
            connector.damage()
        elif connector.usage:
            return False
        if "keeps_cache" not in faults:
            self._engine.forget()
        if external and "keeps_store" not in faults:
            connector.forget()
        return True

    def _pause(self, faults: Faults) -> None:
        self._going_on.clear()
        if "pause_loses" in faults:
            self._engine.connector.lose()
        deadline = time.monotonic() + LEASE_S
        while self._engine.connector.usage and time.monotonic() < deadline:
            time.sleep(POLL_S)


def _variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("VLLM_")}


def begin(sleeps: bool, faults: Faults) -> None:
    """What a server says that was started with ``--enable-sleep-mode`` where there is none."""
    if sleeps and "no_sleep_mode" in faults:
        die("Sleep mode is not supported on current platform.", "ValueError")
