"""The paths of the scripted server."""

from __future__ import annotations

import itertools
import json
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

from fake import api, model, prompt, wire
from fake.counters import Counters
from fake.engine import Engine, Finished
from fake.faults import Faults
from fake.log import die, say

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"


class FakeServer(wire.Server):
    """Everything that the requests of one server share."""

    def __init__(
        self,
        port: int,
        name: str,
        engine: Engine,
        counters: Counters,
        faults: Faults,
        *,
        api_key: str = "",
        max_model_len: int = 4096,
    ) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.api_key, self.max_model_len = api_key, max_model_len
        self.name, self.engine, self.counters, self.faults = name, engine, counters, faults
        self.numbers = itertools.count(1)
        self.lock = threading.Lock()


class Handler(wire.Connection):
    """The requests of one connection."""

    server: FakeServer

    def respond(self, method: str, path: str, body: bytes) -> None:
        if path.startswith("/v1") and not self._may():
            self.reply_json(401, {"error": "Unauthorized"})
        elif method == "POST":
            say(f'INFO:     127.0.0.1 - "POST {path} HTTP/1.1"')
            try:
                self._post(path, json.loads(body))
            except prompt.BadRequest as problem:
                self.reply_json(problem.status, problem.body)
        elif path == "/health":
            self.reply(200, b"")
        elif path == "/metrics":
            usage = self.server.engine.connector.usage
            text = "" if "no_stats" in self.server.faults else self.server.counters.text(usage)
            self.reply(200, text.encode())
        elif path == "/version":
            minor = self.server.faults.number("version") or 32
            self.reply_json(200, {"version": f"0.{minor}.0"})
        elif path == "/v1/models":
            card = {"id": self.server.name, "max_model_len": self.server.max_model_len}
            self.reply_json(200, {"object": "list", "data": [card]})
        elif path.startswith("/fake/kv/"):
            kept = self.server.engine.connector.kept(path.rpartition("/")[2])
            self.reply_json(404 if kept is None else 200, kept)
        else:
            self.reply_json(404, {"detail": "Not Found"})

    def _may(self) -> bool:
        key = self.server.api_key
        return not key or self.headers.get("authorization") == f"Bearer {key}"

    def _post(self, path: str, body: dict[str, Any]) -> None:
        if path == "/tokenize":
            ids = model.tokenize(body["prompt"])
            self.reply_json(200, {"count": len(ids), "tokens": ids})
        elif path in (COMPLETIONS, CHAT):
            self._generate(path == CHAT, self.server.faults.at(self.agent).heard(body))
        else:
            self.reply_json(404, {"detail": "Not Found"})

    def _generate(self, chat: bool, body: dict[str, Any]) -> None:
        server, faults = self.server, self.server.faults.at(self.agent)
        if "wants_key" in faults:
            self.reply_json(401, {"error": "Unauthorized"})
            return
        if body.get("model") != server.name:
            self.reply_json(404, {"error": {"message": f"no model {body.get('model')!r}"}})
            return
        ids = prompt.prompt_of(chat, body, server.max_model_len, faults)
        number = next(server.numbers)
        if "die_on_request" in faults and number == faults.number("die_on_request"):
            die(f"request {number} was one too many")
        if "die_on_length" in faults and len(ids) == faults.number("die_on_length"):
            die(f"a prompt of {len(ids)} tokens was one too many")
        if "never_settle" not in faults:
            server.counters.begin()
        time.sleep(faults.number("slow") / 1000)
        name = f"{'chatcmpl' if chat else 'cmpl'}-{os.getpid()}-{number}"
        with server.lock:
            done = server.engine.generate(name, ids, body, faults)
        head = {"id": name, "created": int(time.time()), "model": server.name}
        if body.get("stream"):
            self.stream(_events(api.pieces(chat, head, body, ids, done), faults))
        else:
            self.reply_json(200, api.whole(chat, head, body, ids, done))
        _count(server.counters, done, faults)


def _events(pieces: Iterator[dict[str, Any]], faults: Faults) -> Iterator[str]:
    yield from map(json.dumps, pieces)
    if "no_done" not in faults:
        yield "[DONE]"


def _count(counters: Counters, done: Finished, faults: Faults) -> None:
    """After the answer, as vLLM may do it too."""
    time.sleep(faults.number("late") / 1000)
    if "never_settle" not in faults:
        counters.finish(done)
    if "foreign" in faults:
        counters.finish_foreign()
