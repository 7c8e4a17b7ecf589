"""A scripted pair with LMCache's disaggregated prefill (lmcache 0.5.6, ``pd_backend.py``).

Prefill answers first and writes later; then it tells the proxy, over a real ZMQ socket. KV of a
token is the token.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import Any

import msgspec
import zmq

Params = dict[str, Any]
WRITING_S = 0.1


class EngineDied(Exception):
    """The scheduler or worker raised: everything on this server ends."""


@dataclass(frozen=True)
class Outcome:
    """What decode counted as transferred, and the KV it answered from."""

    external: int
    kv: list[int]


@dataclass
class Decode:
    """Looks a prompt up in what was written into its buffer; takes no params."""

    init_port: int
    alloc_port: int
    buffer: dict[int, list[int]] = field(default_factory=dict)

    def complete(self, prompt: list[int]) -> Outcome:
        """Of a full hit, the last token is computed again."""
        kv = self.buffer.get(hash(tuple(prompt)))
        return Outcome(0, prompt) if kv is None else Outcome(len(prompt) - 1, kv[:-1])


@dataclass
class Prefill:
    """``network``: (init port, alloc port) to instance. ``degraded``: LMCache did not start."""

    proxy_port: int
    network: dict[tuple[int, int], Decode]
    degraded: bool = False

    def __post_init__(self) -> None:
        self._lock = Lock()
        self._writers: list[Thread] = []
        self._proxy: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.PUSH)
        self._proxy.setsockopt(zmq.LINGER, 0)
        self._proxy.connect(f"tcp://127.0.0.1:{self.proxy_port}")

    def complete(self, prompt: list[int], params: Params | None) -> Params | None:
        """The params that P's answer returns."""
        if not params or self.degraded:
            return None
        if "disagg_spec" in params:
            request, decode = self._receiver(params["disagg_spec"])
            writer = Thread(target=self._write, args=(prompt, request, decode), daemon=True)
            self._writers.append(writer)
            writer.start()
        return {"first_tok": 7} if "ret_first_tok" in params else None

    def tell(self, request: str) -> None:
        """The notification for a request."""
        with self._lock:
            self._proxy.send(msgspec.msgpack.encode({"type": "ProxyNotif", "req_id": request}))

    def close(self) -> None:
        """Finish what is being written, and close the socket to the proxy."""
        for writer in self._writers:
            writer.join()
        self._proxy.close()

    def _receiver(self, spec: Params) -> tuple[str, Decode]:
        try:
            _ = spec["receiver_host"]
            ports = (spec["receiver_init_port"][0], spec["receiver_alloc_port"][0])
            return spec["req_id"], self.network[ports]
        except (KeyError, TypeError) as problem:
            raise EngineDied(f"{type(problem).__name__}: {problem}") from problem

    def _write(self, prompt: list[int], request: str, decode: Decode) -> None:
        time.sleep(WRITING_S)
        decode.buffer[hash(tuple(prompt))] = list(prompt)
        self.tell(request)
