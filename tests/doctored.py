"""A scripted server in the tests' own process, whose answers are changed on their way."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from conformance.assumptions.plain import Plain
from conformance.client import Client
from conformance.clock import RunClock
from conformance.crashes import CrashLedger
from conformance.prompts import Prompts
from conformance.scripted import faults
from conformance.scripted.connectors import NoConnector
from conformance.scripted.counters import Counters
from conformance.scripted.engine import Engine, Finished
from conformance.scripted.faults import NONE, Faults
from conformance.scripted.model import BLOCK
from conformance.scripted.web import FakeServer, Handler
from conformance.serving.attached import AttachedServer

Json = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """A request as the server heard it."""

    path: str
    body: Json


@dataclass(frozen=True)
class Doctor:
    """What is changed: requests, answers (with their status), events of streams, ``/metrics``,
    and requests as they are counted. ``endless``: the path whose streams have no ``[DONE]``;
    ``fault``: one of the scripted server's own.
    """

    heard: Callable[[Asked], None] = lambda _: None
    answer: Callable[[Asked, int, Json], int | None] = lambda *_: None
    events: Callable[[Asked, list[Json]], None] = lambda *_: None
    endless: str = ""
    page: Callable[[str], str] = lambda text: text
    counted: Callable[[Finished], Finished] = lambda done: done
    fault: str = ""


class _Counters(Counters):
    doctor = Doctor()

    def finish(self, done: Finished, faults: Faults = NONE) -> None:
        super().finish(self.doctor.counted(done), faults)


class _Server(FakeServer):
    def __init__(self, doctor: Doctor) -> None:
        counters = _Counters("model", transfers=False)
        counters.doctor = self.doctor = doctor
        faulty = faults.parse(doctor.fault, "reference")
        super().__init__(0, "model", Engine(NoConnector()), counters, faulty)
        self.RequestHandlerClass = _Handler


class _Handler(Handler):
    server: _Server

    def respond(self, method: str, path: str, body: bytes) -> None:
        self.asked = Asked(urlsplit(path).path, json.loads(body or "{}") if body else {})
        self.server.doctor.heard(self.asked)
        super().respond(method, path, json.dumps(self.asked.body).encode() if body else body)

    def reply_json(self, status: int, body: Any) -> None:
        other = self.server.doctor.answer(self.asked, status, body)
        super().reply_json(other or status, body)

    def reply(self, status: int, data: bytes, kind: str = "text/plain") -> None:
        if self.asked.path == "/metrics":
            data = self.server.doctor.page(data.decode()).encode()
        super().reply(status, data, kind)

    def stream(self, events: Iterable[str]) -> None:
        told = list(events)
        chunks = [json.loads(event) for event in told if event != "[DONE]"]
        self.server.doctor.events(self.asked, chunks)
        end = [event for event in told if event == "[DONE]"]
        ends = self.asked.path != self.server.doctor.endless
        super().stream([*map(json.dumps, chunks), *(end if ends else [])])


@contextmanager
def plain(
    doctor: Doctor, folder: Path, *, ours: bool = True, started: bool = True
) -> Iterator[Plain]:
    """A server without a connector, as the assumptions are tried on it."""
    made = _Server(doctor)
    threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    url = f"http://127.0.0.1:{made.server_address[1]}"
    server = AttachedServer("reference", "model", url, BLOCK)
    client = Client(server, RunClock(), CrashLedger(folder / "crashes"), "reference")
    try:
        yield Plain(client, Prompts(client, 0), ours=ours, started=started)
    finally:
        client.close()
        made.shutdown()
        made.server_close()
