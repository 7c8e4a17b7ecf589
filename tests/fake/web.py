"""The HTTP side of the scripted server."""

from __future__ import annotations

import itertools
import json
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from fake import api, model
from fake.counters import Counters
from fake.engine import Engine, Finished
from fake.faults import Faults
from fake.log import die, say

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"


class FakeServer(ThreadingHTTPServer):
    """Everything that the requests of one server share."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(
        self, port: int, name: str, engine: Engine, counters: Counters, faults: Faults
    ) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.name, self.engine, self.counters, self.faults = name, engine, counters, faults
        self.numbers = itertools.count(1)
        self.lock = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: FakeServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        if self.path == "/health":
            self._reply(200, b"")
        elif self.path == "/metrics":
            self._reply(200, self.server.counters.text().encode(), "text/plain")
        elif self.path.startswith("/fake/kv/"):
            kept = self.server.engine.connector.kept(self.path.rpartition("/")[2])
            self._json(404 if kept is None else 200, kept)
        else:
            self._json(404, {"detail": "Not Found"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        say(f'INFO:     127.0.0.1 - "POST {self.path} HTTP/1.1"')
        try:
            if self.path == "/tokenize":
                ids = model.tokenize(body["prompt"])
                self._json(200, {"count": len(ids), "tokens": ids})
            elif self.path in (COMPLETIONS, CHAT):
                self._generate(self.path == CHAT, body)
            else:
                self._json(404, {"detail": "Not Found"})
        except api.BadRequest as problem:
            self._json(400, problem.body)

    def _generate(self, chat: bool, body: dict[str, Any]) -> None:
        server, faults = self.server, self.server.faults
        ids = api.prompt_of(chat, body)
        number = next(server.numbers)
        if "die_on_request" in faults and number == faults.number("die_on_request"):
            die(f"request {number} was one too many")
        if "die_on_length" in faults and len(ids) == faults.number("die_on_length"):
            die(f"a prompt of {len(ids)} tokens was one too many")
        server.counters.begin()
        time.sleep(faults.number("slow") / 1000)
        name = f"{'chatcmpl' if chat else 'cmpl'}-{os.getpid()}-{number}"
        with server.lock:
            done = server.engine.generate(name, ids, body)
        head = {"id": name, "created": int(time.time()), "model": server.name}
        if body.get("stream"):
            self._stream(api.pieces(chat, head, body, ids, done))
        else:
            self._json(200, api.whole(chat, head, body, ids, done))
        self._count(done)

    def _count(self, done: Finished) -> None:
        """After the answer, as vLLM may do it too."""
        time.sleep(self.server.faults.number("late") / 1000)
        self.server.counters.finish(done.reason, done.sources, done.moved)
        if "foreign" in self.server.faults:
            self.server.counters.finish_foreign()

    def _stream(self, events: Any) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for event in events:
            self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        if "no_done" not in self.server.faults:
            self.wfile.write(b"data: [DONE]\n\n")
        self.wfile.flush()
        self.close_connection = True

    def _json(self, status: int, body: Any) -> None:
        self._reply(status, json.dumps(body).encode(), "application/json")

    def _reply(self, status: int, data: bytes, kind: str = "text/plain") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: ``do_POST`` logs what matters."""
