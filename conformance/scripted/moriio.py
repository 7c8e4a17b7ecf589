"""A scripted MoRIIO pair that keeps the connector's contract (vLLM 0.32.0, ``moriio_*.py``).

KV of a token is the token itself, so what decode answers from can be read off its outcome.
"""

from __future__ import annotations

import itertools
import re
import time
from dataclasses import dataclass, field
from threading import Thread
from typing import Any

import msgspec
import zmq

Params = dict[str, Any]
BLOCK = 4
PORTS = {
    "prefill_handshake": 6301,
    "prefill_notify": 61005,
    "decode_handshake": 7301,
    "decode_notify": 62005,
}
HANG_S = 0.3
NOBODYS = -1
_ENGINE_SUFFIX = "-0-0123abcd"


class EngineDied(Exception):
    """The scheduler raised: everything on this server ends."""


class Hung(Exception):
    """The request waits for KV that nobody sends."""


@dataclass(frozen=True)
class Outcome:
    """What decode counted as transferred, and the KV it answered from."""

    external: int
    kv: list[int]


@dataclass
class Instance:
    """One server. ``network``: notify port to instance, shared by all."""

    mode: str
    handshake: int
    notify: int
    network: dict[int, Instance]
    blocks: dict[int, list[int]] = field(default_factory=dict)
    announced: dict[str, dict[int, list[int]]] = field(default_factory=dict)
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.network[self.notify] = self

    def peer(self, request: str, params: Params, side: str) -> Instance:
        """Who the request id names on a side, else the keys; no other place is looked in."""
        address = _embedded(request, side)
        try:
            if address is None:
                _ = params["remote_host"], params["remote_handshake_port"]
                port = int(params["remote_notify_port"])
            else:
                port = int(dict(part.split(":", 1) for part in address.split(","))["notify"])
        except (KeyError, TypeError) as problem:
            raise EngineDied(f"no peer for {request!r}: {problem}") from problem
        if port not in self.network:
            raise Hung(f"nobody listens at {port}")
        return self.network[port]


class Prefill(Instance):
    """Takes ``kv_transfer_params`` as the prefill leg carries them."""

    def complete(
        self,
        prompt: list[int],
        headers: dict[str, str],
        params: Params | None,
        *,
        eos: bool = False,
    ) -> Params | None:
        """The params that P's answer returns."""
        request = _internal(headers)
        if not params or not params.get("do_remote_decode"):
            return None
        transfer = params.get("transfer_id") or f"sidecar-{request}"
        if self.mode == "WRITE":
            self._write(prompt, request, params, transfer)
        if eos:
            return None
        return {
            "do_remote_prefill": True,
            "do_remote_decode": False,
            "remote_block_ids": [self._keep(prompt)],
            "remote_engine_id": f"127.0.0.1:{self.handshake}",
            "remote_host": "127.0.0.1",
            "remote_handshake_port": self.handshake,
            "remote_notify_port": self.notify,
            "remote_dp_rank": 0,
            "tp_size": 1,
            "transfer_id": transfer,
        }

    def _keep(self, prompt: list[int]) -> list[int]:
        ids = [next(self.numbers) for _ in range(0, len(prompt), BLOCK)]
        self.blocks |= {i: prompt[at * BLOCK : (at + 1) * BLOCK] for at, i in enumerate(ids)}
        return ids

    def _write(self, prompt: list[int], request: str, params: Params, transfer: str) -> None:
        """In the background, into the blocks that decode announces under the transfer id."""
        for key in ("remote_block_ids", "remote_engine_id"):
            if key not in params:
                raise EngineDied(f"KeyError: {key!r}")
        decode = self.peer(request, params, "decode")
        Thread(target=self._fill, args=(prompt, transfer, decode), daemon=True).start()

    def _fill(self, prompt: list[int], transfer: str, decode: Instance) -> None:
        deadline = time.monotonic() + HANG_S
        while transfer not in self.announced and time.monotonic() < deadline:
            time.sleep(0.005)
        into = self.announced.pop(transfer, None)
        if into is not None and decode is not self:
            into[0] = list(prompt)


class Decode(Instance):
    """Takes ``kv_transfer_params`` as the decode leg carries them."""

    def complete(
        self, prompt: list[int], headers: dict[str, str], params: Params | None
    ) -> Outcome:
        """What became of the request."""
        request, params = _internal(headers), params or {}
        if self.mode == "READ":
            return self._read(prompt, request, params)
        if not params.get("do_remote_prefill"):
            return Outcome(0, prompt)
        return self._await(prompt, request, params)

    def _read(self, prompt: list[int], request: str, params: Params) -> Outcome:
        """Claims all but one token in any case; the KV is there only if it was read."""
        claimed = max(len(prompt) - 1, 0)
        ids = params.get("remote_block_ids")
        if not params.get("do_remote_prefill") or not ids or "remote_engine_id" not in params:
            return Outcome(claimed, [NOBODYS] * claimed)
        prefill = self.peer(request, params, "prefill")
        kv = [token for i in ids[0] for token in prefill.blocks.pop(i, [NOBODYS] * BLOCK)]
        return Outcome(claimed, kv[:claimed])

    def _await(self, prompt: list[int], request: str, params: Params) -> Outcome:
        if "transfer_id" not in params:
            params["transfer_id"] = f"sidecar-{request}"
        into: dict[int, list[int]] = {}
        prefill = self.peer(request, params, "prefill")
        prefill.announced[params["transfer_id"]] = into
        deadline = time.monotonic() + HANG_S
        while not into:
            if time.monotonic() > deadline:
                raise Hung(f"nobody wrote the KV of {params['transfer_id']}")
            time.sleep(0.005)
        return Outcome(len(prompt), into[0][: len(prompt)])


def register(port: int, message: Params) -> zmq.Socket[bytes]:
    """One heartbeat, as an instance sends it; close what is returned."""
    socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
    socket.linger = 0
    socket.connect(f"tcp://127.0.0.1:{port}")
    socket.send(msgspec.msgpack.encode(message))
    return socket


def _internal(headers: dict[str, str]) -> str:
    """vLLM's own request id, made of the client's."""
    return f"cmpl-{headers.get('X-Request-Id', 'none')}{_ENGINE_SUFFIX}"


def _embedded(request: str, side: str) -> str | None:
    found = re.search(r"___prefill_addr_(.+?)___decode_addr_(.+)_[0-9a-f]{32}(?:-.*)?$", request)
    return found[1 if side == "prefill" else 2] if found else None
