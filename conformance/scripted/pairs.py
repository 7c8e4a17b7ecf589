"""Scripted servers that run already, as somebody else would have started them; and a router.

Each is forked from who starts it, its socket bound before, so that it is up at once.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

from conformance.scripted import faults
from conformance.scripted.connectors import Example, Nixl, NoConnector
from conformance.scripted.counters import Counters
from conformance.scripted.engine import Engine
from conformance.scripted.model import BLOCK
from conformance.scripted.router import Router
from conformance.scripted.web import FakeServer
from conformance.scripted.wire import Server

_FORK = multiprocessing.get_context("fork")


@dataclass
class Place:
    """Servers that were started here; they end with :func:`place`."""

    folder: Path
    _running: list[BaseProcess] = field(default_factory=list)

    def server(
        self,
        role: str,
        fault: str = "",
        *,
        connector: str = "nixl",
        name: str = "model",
        api_key: str = "",
        max_model_len: int = 4096,
    ) -> str:
        """Start one; its URL. ``connector``: ``nixl``, ``example`` or empty."""
        faulty = faults.parse(fault, role)
        counters = Counters(
            name, transfers=connector == "nixl", block=faulty.number("block") or BLOCK
        )
        if "busy" in faulty:
            counters.begin()
        engine = Engine(NoConnector())
        made = FakeServer(
            0, name, engine, counters, faulty, api_key=api_key, max_model_len=max_model_len
        )
        port = made.server_address[1]
        if connector == "nixl":
            engine.connector = Nixl(port)
        elif connector == "example":
            engine.connector = Example(str(self.folder), writes=role == "prefill")
        return self._run(made)

    def router(self, prefill_url: str, decode_url: str, fault: str = "") -> str:
        """Start one before a pair; its URL. ``fault``: see :class:`.router.Router`."""
        return self._run(Router(prefill_url, decode_url, fault))

    def pair(self, fault: str = "", **more: str) -> tuple[str, str]:
        """Prefill's URL and decode's."""
        prefill = self.server("prefill", fault, **more)  # type: ignore[arg-type]
        return prefill, self.server("decode", fault, **more)  # type: ignore[arg-type]

    def stop(self, url: str) -> None:
        """End one, at once."""
        ending = next(process for process in self._running if process.name == url)
        ending.kill()
        ending.join()

    def close(self) -> None:
        """End all."""
        for process in self._running:
            process.kill()
            process.join()

    def _run(self, made: Server) -> str:
        url = f"http://127.0.0.1:{made.server_address[1]}"
        process = _FORK.Process(target=made.serve_forever, name=url, daemon=True)
        process.start()
        made.server_close()
        self._running.append(process)
        return url


@contextmanager
def place(folder: Path) -> Iterator[Place]:
    """Where servers can be started; at the end they are stopped."""
    folder.mkdir(exist_ok=True)
    made = Place(folder)
    try:
        yield made
    finally:
        made.close()
