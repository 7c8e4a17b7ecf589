"""A connector whose KV lies with a daemon.

``python -m conformance.scripted.store --port N --folder DIR`` is that daemon.

The server finds the daemon through a config file that ``FAKE_STORE_CONFIG`` names.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

from conformance.scripted import wire
from conformance.scripted.connectors import NoConnector, Params, read_tensor, write_tensor
from conformance.scripted.model import BLOCK

CONFIG_VARIABLE = "FAKE_STORE_CONFIG"


class Store(NoConnector):
    """Whole blocks below the last token, under a hash of them; ``writes`` on prefill alone."""

    looks_up = True

    def __init__(self, *, writes: bool) -> None:
        config = json.loads(Path(os.environ[CONFIG_VARIABLE]).read_text(encoding="utf-8"))
        self._port: int = config["master"]
        self._writes = writes
        _ask(self._port, "GET", "/ready")  # a server without its daemon does not start

    def load(self, ids: Sequence[int], params: Params) -> tuple[list[int], int]:
        stored = _whole_blocks(ids)
        raw = _ask(self._port, "GET", f"/kv/{_key(stored)}") if stored else b""
        found: list[int] = json.loads(raw) if raw else []
        return found, 4 * len(found)

    def save(self, request: str, ids: Sequence[int], kv: list[int], params: Params) -> Params:
        stored = _whole_blocks(ids)
        if self._writes and stored:
            _ask(self._port, "POST", f"/kv/{_key(stored)}", json.dumps(kv[: len(stored)]))
        return {}


class Master(wire.Server):
    """The daemon: a file for everything it is given."""

    def __init__(self, port: int, folder: Path) -> None:
        super().__init__(("127.0.0.1", port), _Connection)
        self.folder = folder


class _Connection(wire.Connection):
    server: Master

    def respond(self, method: str, path: str, body: bytes) -> None:
        file = self.server.folder / f"{path.rpartition('/')[2]}.safetensors"
        if path == "/ready":
            self.reply(200, b"")
        elif method == "POST":
            write_tensor(file, json.loads(body))
            self.reply(200, b"")
        elif file.exists():
            self.reply_json(200, read_tensor(file))
        else:
            self.reply(404, b"")


def _ask(port: int, method: str, path: str, body: str = "") -> bytes:
    """The body of the daemon's answer; empty if it has nothing."""
    head = f"{method} {path} HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=10) as peer:
        peer.sendall(f"{head}{body}".encode())
        file = peer.makefile("rb")
        found = file.readline().split()[1] == b"200"
        length = 0
        while line := file.readline().decode().strip().lower():
            length = int(line.partition(":")[2]) if line.startswith("content-length") else length
        return file.read(length) if found else b""


def _whole_blocks(ids: Sequence[int]) -> list[int]:
    return list(ids[: max(len(ids) - 1, 0) // BLOCK * BLOCK])


def _key(stored: list[int]) -> str:
    return blake2b(repr(stored).encode(), digest_size=16).hexdigest()


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    Master(options.port, options.folder).serve_forever()


if __name__ == "__main__":
    main()
