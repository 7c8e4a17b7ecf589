"""HTTP/1.1 by hand, as much as the suite's clients need.

``http.server`` would do, but importing it takes as long as everything else here together.
"""

from __future__ import annotations

import json
import socket
import socketserver
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from io import BufferedIOBase
from typing import Any

PIECES = 8
_REASONS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    500: "Internal Server Error",
}


class Server(socketserver.ThreadingTCPServer):
    """Listens; every connection has a thread."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64


class Connection(socketserver.StreamRequestHandler):
    """One connection: request after request, until the client has had enough."""

    disable_nagle_algorithm = True
    wbufsize = -1
    # Of the next answer: whether it ends half way, and over how many seconds it comes.
    cut = False
    over_s = 0.0

    def handle(self) -> None:
        """Read requests and give each to :meth:`respond`."""
        self.open = True
        while self.open and (line := self.rfile.readline().split()):
            self.headers = _headers(self.rfile)
            self.agent = self.headers.get("user-agent", "")
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            self.respond(line[0].decode(), line[1].decode(), body)

    def respond(self, method: str, path: str, body: bytes) -> None:
        """Answer one request, by one of the methods below."""
        raise NotImplementedError

    def reply(self, status: int, data: bytes, kind: str = "text/plain") -> None:
        """A whole answer."""
        self._head(status, kind, f"Content-Length: {len(data)}")
        size = len(data) // PIECES + 1
        self._out([data[at : at + size] for at in range(0, len(data), size)])

    def reply_json(self, status: int, body: Any) -> None:
        """A whole answer as JSON."""
        self.reply(status, json.dumps(body).encode(), "application/json")

    def stream(self, events: Iterable[str]) -> None:
        """Server-sent events."""
        self._head(200, "text/event-stream", "Transfer-Encoding: chunked")
        self._out([*(_chunk(f"data: {event}\n\n".encode()) for event in events), _chunk(b"")])

    def _out(self, parts: Sequence[bytes]) -> None:
        if self.cut:
            parts, self.open = parts[: len(parts) // 2], False
        with suppress(OSError):  # whoever asked has had enough
            for part in parts:
                self.wfile.write(part)
                if self.over_s:
                    self.wfile.flush()
                    time.sleep(self.over_s / len(parts))
            self.wfile.flush()
        self.cut, self.over_s = False, 0.0

    def _head(self, status: int, kind: str, header: str) -> None:
        lines = (f"HTTP/1.1 {status} {_REASONS[status]}", f"Content-Type: {kind}", header, "", "")
        self.wfile.write("\r\n".join(lines).encode())


def fetch(host: str, port: int, path: str) -> bytes | None:
    """The body of a whole answer; ``None`` if it is not 200."""
    with socket.create_connection((host, port), timeout=10) as peer, peer.makefile("rwb") as file:
        file.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        file.flush()
        status = file.readline().split()[1]
        body = file.read(int(_headers(file).get("content-length", 0)))
    return body if status == b"200" else None


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _headers(file: BufferedIOBase) -> dict[str, str]:
    found: dict[str, str] = {}
    while line := file.readline().decode().strip():
        name, _, value = line.partition(":")
        found[name.lower()] = value.strip()
    return found
