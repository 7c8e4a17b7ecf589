"""A router before a scripted pair: both legs of a request, or not quite."""

from __future__ import annotations

import itertools
import json
from typing import Any
from urllib.request import Request, urlopen

from conformance.scripted import wire

Json = dict[str, Any]
_ASK = {"do_remote_decode": True, "do_remote_prefill": False}


class Router(wire.Server):
    """``fault``: ``drop_params`` on the way to D; ``decode_only``; ``prefill_only``; or none."""

    def __init__(self, prefill_url: str, decode_url: str, fault: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.prefill_url, self.decode_url, self.fault = prefill_url, decode_url, fault
        self.numbers = itertools.count(1)


class _Handler(wire.Connection):
    server: Router

    def respond(self, method: str, path: str, body: bytes) -> None:
        if method == "POST":
            self._both_legs(path, json.loads(body))
        else:
            self.reply(200, b"")

    def _both_legs(self, path: str, body: Json) -> None:
        server, params = self.server, None
        if server.fault != "decode_only":
            first = {**body, "max_tokens": 1, "stream": False, "kv_transfer_params": _ASK}
            params = json.loads(self._forward(server.prefill_url + path, first))
            params = params["kv_transfer_params"]
        if server.fault == "drop_params":
            params = None
        second = {**body, "kv_transfer_params": params}
        target = server.prefill_url if server.fault == "prefill_only" else server.decode_url
        answer = self._forward(target + path, second)
        if body.get("stream"):
            events = answer.decode().split("\n\n")
            self.stream(event.removeprefix("data: ") for event in events if event)
        else:
            self.reply(200, answer, "application/json")

    def _forward(self, url: str, body: Json) -> bytes:
        headers = {"User-Agent": self.agent, "Content-Type": "application/json"}
        data = json.dumps(body).encode()
        with urlopen(Request(url, data, headers), timeout=10) as answer:
            found: bytes = answer.read()
        return found
