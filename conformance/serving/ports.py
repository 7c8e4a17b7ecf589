"""Ports are leased, never fixed: for HTTP, side channels, bootstrap servers and daemons.

A lease is an abstract Unix socket named after the port. The kernel drops it when its owner
dies, so nothing leaks after a ``kill -9``, and it holds across processes (xdist workers).
"""

from __future__ import annotations

import random
import socket
from dataclasses import dataclass, field

from conformance.errors import EnvironmentProblem, UsageError

# Below Linux' ephemeral range (32768), where vLLM picks its own ports for ZMQ and torch.
DEFAULT_RANGE = "20000-29999"


@dataclass
class Lease:
    """One port of this machine that nobody else of the suite will be given."""

    port: int
    _claim: socket.socket = field(repr=False)

    def release(self) -> None:
        """Give the port back; safe to call twice."""
        self._claim.close()


@dataclass(frozen=True)
class PortRange:
    """The ports that may be leased, both ends included."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> PortRange:
        """From ``20000-29999``. Raises :class:`UsageError`."""
        first, _, last = text.partition("-")
        try:
            found = cls(int(first), int(last or first))
        except ValueError as problem:
            raise UsageError(f"--port-range {text!r}: write FIRST-LAST, such as 20000-29999") from (
                problem
            )
        if not 1024 <= found.first <= found.last <= 65535:
            raise UsageError(f"--port-range {text!r}: needs 1024 <= FIRST <= LAST <= 65535")
        return found

    def lease(self) -> Lease:
        """A port that is free now. Raises :class:`EnvironmentProblem` when there is none."""
        ports = range(self.first, self.last + 1)
        start = random.randrange(len(ports))  # where others do not look first
        for port in (*ports[start:], *ports[:start]):
            claim = _claim(port)
            if claim is None:
                continue
            if is_free(port):
                return Lease(port, claim)
            claim.close()
        raise EnvironmentProblem(
            f"no free port in {self.first}-{self.last}: all are occupied. "
            "Stop what listens there (ss -ltnp) or give another range with --port-range"
        )


def is_free(port: int) -> bool:
    """Whether a server could listen on the port now, on every address it might choose."""
    for address in ("127.0.0.1", "0.0.0.0"):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except OSError:
                return False
    return True


def is_open(port: int) -> bool:
    """Whether something accepts connections on the port of the loopback address."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _claim(port: int) -> socket.socket | None:
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        claim.bind(f"\0kv-conformance-port-{port}")
    except OSError:
        claim.close()
        return None
    return claim
