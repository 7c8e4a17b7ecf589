"""How KV gets from prefill to decode: over HTTP as with NIXL, or in files as with the example."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Any

from conformance.scripted.model import BLOCK
from conformance.scripted.prompt import BadRequest
from conformance.scripted.wire import fetch

Params = dict[str, Any]
LAYERS = ("layer.0", "layer.1")


class NoConnector:
    """A server of its own: the reference."""

    looks_up = False
    leaked = 0

    def load(self, ids: Sequence[int], params: Params) -> tuple[list[int], int]:
        """KV of the first prompt tokens from elsewhere, and the bytes that were moved for it."""
        return [], 0

    def save(self, request: str, ids: Sequence[int], kv: list[int], params: Params) -> Params:
        """Keep the KV of a prompt for others; what the client is to hand on."""
        return {}

    def kept(self, request: str) -> list[int] | None:
        """KV that a decode server comes for."""
        return None

    def damage(self) -> None:
        """Overwrite what waits for decode servers."""

    def lose(self) -> None:
        """Drop what waits for decode servers."""

    def forget(self) -> None:
        """Empty a store."""

    @property
    def usage(self) -> float:
        """The part of the KV cache that waits for decode servers."""
        return self.leaked / 1000


class Nixl(NoConnector):
    """Prefill keeps the KV under the request's id; decode fetches it, all of it.

    ``model``: whose KV it is; that of another is refused, as in vLLM's handshake. None takes all.
    """

    looks_up = True

    def __init__(self, port: int, model: str | None = None) -> None:
        self._port, self._model = port, model
        self._kept: dict[str, list[int]] = {}

    def load(self, ids: Sequence[int], params: Params) -> tuple[list[int], int]:
        if not params.get("do_remote_prefill"):
            return [], 0
        if self._model not in (None, params["remote_engine_id"].partition(":")[2]):
            raise BadRequest("KV load failed: the handshake found another model.", status=500)
        path = f"/fake/kv/{params['remote_request_id']}"
        raw = fetch(params["remote_host"], params["remote_port"], path)
        found: list[int] = json.loads(raw) if raw else []
        return found[: len(ids)], 4 * len(found)

    def save(self, request: str, ids: Sequence[int], kv: list[int], params: Params) -> Params:
        if not params.get("do_remote_decode"):
            return {}
        self._kept[request] = kv
        return {
            "do_remote_prefill": True,
            "do_remote_decode": False,
            "remote_engine_id": f"engine-{self._port}:{self._model}",
            "remote_block_ids": [list(range(-(-len(ids) // BLOCK)))],
            "remote_request_id": request,
            "remote_host": "127.0.0.1",
            "remote_port": self._port,
        }

    def kept(self, request: str) -> list[int] | None:
        return self._kept.pop(request, None)

    def damage(self) -> None:
        self._kept = {request: [1] * len(kv) for request, kv in self._kept.items()}

    def lose(self) -> None:
        self._kept.clear()

    @property
    def usage(self) -> float:
        return (len(self._kept) + self.leaked) / 1000


class Example(NoConnector):
    """Whole blocks below the last token, one safetensors file per layer and prompt."""

    looks_up = True

    def __init__(self, folder: str, *, writes: bool) -> None:
        self._folder = Path(folder)
        self._writes = writes
        self._lock = Lock()

    def load(self, ids: Sequence[int], params: Params) -> tuple[list[int], int]:
        files = self._files(_whole_blocks(ids), params)
        if not files or not all(file.exists() for file in files):
            return [], 0
        layers = [read_tensor(file) for file in files]
        return layers[0], 4 * sum(map(len, layers))

    def save(self, request: str, ids: Sequence[int], kv: list[int], params: Params) -> Params:
        stored = _whole_blocks(ids)
        with self._lock:
            for file in self._files(stored, params) if self._writes and stored else ():
                file.parent.mkdir(exist_ok=True)
                if not file.exists():
                    write_tensor(file, kv[: len(stored)])
        return {}

    def forget(self) -> None:
        with self._lock:
            for entry in self._folder.iterdir():
                shutil.rmtree(entry, ignore_errors=True)

    def _files(self, stored: Sequence[int], params: Params) -> list[Path]:
        named = f"{list(stored)}{params.get('cache_salt') or ''}"
        key = blake2b(named.encode(), digest_size=16).hexdigest()
        return [self._folder / key / f"{layer}.safetensors" for layer in LAYERS] if stored else []


def write_tensor(file: Path, values: Sequence[int]) -> None:
    """A safetensors file that holds one tensor of 32-bit floats."""
    data = struct.pack(f"<{len(values)}f", *values)
    entry = {"dtype": "F32", "shape": [len(values)], "data_offsets": [0, len(data)]}
    header = json.dumps({"kv_cache": entry}).encode()
    file.write_bytes(struct.pack("<Q", len(header)) + header + data)


def read_tensor(file: Path) -> list[int]:
    """The values of such a file."""
    raw = file.read_bytes()
    data = raw[8 + struct.unpack("<Q", raw[:8])[0] :]
    return [int(value) for value in struct.unpack(f"<{len(data) // 4}f", data)]


def connector_for(config: Params, port: int, model: str | None = None) -> NoConnector:
    """The one that ``--kv-transfer-config`` names."""
    name = config.get("kv_connector")
    if name == "NixlConnector":
        return Nixl(port, model)
    if name == "ExampleConnector":
        folder = config["kv_connector_extra_config"]["shared_storage_path"]
        return Example(folder, writes=config["kv_role"] == "kv_producer")
    return NoConnector()


def _whole_blocks(ids: Sequence[int]) -> list[int]:
    return list(ids[: max(len(ids) - 1, 0) // BLOCK * BLOCK])
