"""A ZMQ socket that a router binds, for what instances tell it of their own accord.

MoRIIO instances register themselves, LMCache's prefill tells when KV has been written: both send
one MessagePack map a message (vLLM 0.32.0, ``moriio_heartbeat.py``; lmcache 0.5.6,
``pd_backend.py``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import Any, Literal
from weakref import WeakValueDictionary

from conformance.errors import EnvironmentProblem, HandoffBroken

Pattern = Literal["ROUTER", "PULL"]
Message = dict[str, Any]
_POLL_MS = 50

_open: WeakValueDictionary[tuple[str, int], Mailbox] = WeakValueDictionary()
_opening = Lock()


class Mailbox:
    """One bound socket and every message it received; closed when nobody holds it any more."""

    def __init__(self, pattern: Pattern, host: str, port: int) -> None:
        zmq, self._decode = _libraries()
        self.port = port
        self._socket = zmq.Context.instance().socket(getattr(zmq, pattern))
        self._socket.linger = 0
        self._lock = Lock()
        self._received: list[Message] = []
        try:
            self._socket.bind(f"tcp://{host}:{port}")
        except zmq.ZMQError as problem:
            self._socket.close()
            raise EnvironmentProblem(
                f"port {port} cannot be listened on ({problem}): the instances tell a router "
                "there who they are, so stop the router that holds it"
            ) from problem

    @classmethod
    def on(cls, pattern: Pattern, host: str, port: int) -> Mailbox:
        """The mailbox of an address, shared by all pairs whose instances send there."""
        with _opening:
            found = _open.get((host, port))
            if found is None:
                found = _open[host, port] = cls(pattern, host, port)
            return found

    def find(self, wanted: Callable[[Message], bool], limit_s: float, what: str) -> Message:
        """The latest message that is wanted, as soon as there is one.

        Callers may be several threads; each reads for all. Raises :class:`HandoffBroken`.
        """
        deadline = time.monotonic() + limit_s
        while True:
            with self._lock:
                for message in reversed(self._received):
                    if wanted(message):
                        return message
                self._receive()
            if time.monotonic() > deadline:
                received = self._received or "nothing"
                raise HandoffBroken(f"{what} within {limit_s:.0f} s; received instead: {received}")

    def __del__(self) -> None:
        if hasattr(self, "_socket"):
            self._socket.close()

    def _receive(self) -> None:
        if self._socket.poll(_POLL_MS):
            frame = self._socket.recv_multipart()[-1]
            try:
                message = self._decode(frame)
            except ValueError:
                message = None
            if isinstance(message, dict) and message not in self._received:
                self._received.append(message)


def _libraries() -> tuple[Any, Callable[[bytes], Any]]:
    """Imported on use: only these connectors need them."""
    try:
        import msgspec
        import zmq
    except ImportError as problem:
        raise EnvironmentProblem(
            f"this connector's instances talk to a router over ZMQ, and {problem.name} is not "
            "installed beside the suite: pip install 'kv-conformance[router]'"
        ) from problem
    return zmq, msgspec.msgpack.decode
