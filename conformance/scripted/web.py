"""The paths of the scripted server."""

from __future__ import annotations

import itertools
import json
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from conformance.scripted import dialects, gateway, model, prompt, spoil, template, ways, wire
from conformance.scripted.counters import Counters
from conformance.scripted.engine import Engine, Finished
from conformance.scripted.faults import Faults
from conformance.scripted.lifecycle import Lifecycle
from conformance.scripted.log import die, say
from conformance.scripted.pool import Pool
from conformance.scripted.variants import Drafts
from conformance.scripted.ways import Part, Way

WAYS: dict[str, Way] = {
    "/v1/completions": ways.Completions(chat=False),
    "/v1/chat/completions": Way(chat=True),
    "/v1/chat/completions/batch": ways.Batch(chat=True),
    "/v1/responses": dialects.Responses(),
    "/v1/messages": dialects.Messages(),
    "/inference/v1/generate": ways.Generate(chat=False),
}
FIRST_TWO = tuple(WAYS)[:2]
# So many tokens are answered at once; each one more takes a millisecond.
AT_ONCE = 96
# How the suite says that it reads the page for its counters (conformance/client.py).
COUNTING = " (counters)"


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
        self.names = [name, *engine.adapters]
        self.numbers = itertools.count(1)
        self.metrics = spoil.Metrics()
        self.gateway = gateway.Gateway()
        self.lifecycle, self.pool, self.drafts = Lifecycle(engine), Pool(), Drafts()
        self.lock = threading.Lock()


class Handler(wire.Connection):
    """The requests of one connection."""

    server: FakeServer

    def respond(self, method: str, path: str, body: bytes) -> None:
        if path.startswith("/v1") and not self._may():
            self.reply_json(401, {"error": "Unauthorized"})
        elif method == "POST" and self.server.lifecycle.knows(path, self._faults):
            self.reply_json(200, self.server.lifecycle.command(path, self._faults))
        elif method == "POST":
            say(f'INFO:     127.0.0.1 - "POST {path} HTTP/1.1"')
            try:
                self._post(path, json.loads(body or "{}"))
            except prompt.BadRequest as problem:
                self._refuse(problem)
        elif path == "/health":
            self.reply(200, b"")
        elif path == "/metrics":
            self._metrics()
        elif path == "/version":
            minor = self.server.faults.number("version") or 32
            self.reply_json(200, {"version": f"0.{minor}.0"})
        elif path == "/v1/models":
            rest = {"root": self.server.name, "max_model_len": self.server.max_model_len}
            cards = [{"id": name, **rest} for name in self.server.names]
            self.reply_json(200, {"object": "list", "data": cards})
        elif path == "/is_paused" and "no_commands" not in self._faults:
            self.reply_json(200, {"is_paused": self.server.lifecycle.paused})
        elif path.startswith("/server_info") and "no_commands" not in self._faults:
            self.reply_json(200, self.server.lifecycle.config(self._faults))
        elif path.startswith("/fake/kv/"):
            kept = self.server.engine.connector.kept(path.rpartition("/")[2])
            self.reply_json(404 if kept is None else 200, kept)
        else:
            self.reply_json(404, {"detail": "Not Found"})

    @property
    def _faults(self) -> Faults:
        return self.server.faults.at(self.agent)

    def _may(self) -> bool:
        key = self.server.api_key
        return not key or self.headers.get("authorization") == f"Bearer {key}"

    def _post(self, path: str, body: dict[str, Any]) -> None:
        faults = self.server.faults.at(self.agent)
        if path == "/tokenize":
            ids = template.render(body) if "messages" in body else model.tokenize(body["prompt"])
            self.reply_json(200, {"count": len(ids), "tokens": ids})
        elif path not in WAYS or ("no_endpoint" in faults and path not in FIRST_TWO):
            self.reply_json(404, {"detail": "Not Found"})
        elif path.startswith("/inference") and "no_scale_out" in faults:
            self.reply_json(403, {"error": {"message": "Scale-out endpoints are disabled."}})
        else:
            self._generate(WAYS[path], faults.heard(body), faults)

    def _metrics(self) -> None:
        server = self.server
        text = server.counters.text(server.engine.connector.usage) + server.pool.text()
        text += server.drafts.text()
        text = "" if "no_stats" in server.faults else text
        running, faults = server.counters.running, server.faults.at(self.agent)
        reader = self.agent.removesuffix(COUNTING)
        text = server.gateway.page(text, reader, server.faults.at(reader))
        status, text = server.metrics.page(text, running, faults)
        self.reply(status, text.encode())

    def _refuse(self, problem: prompt.BadRequest) -> None:
        server = self.server
        server.metrics.refused = True
        if "counts_refused" in server.faults.at(self.agent):
            server.counters.refuse(1)
        self.reply_json(problem.status, problem.body)

    def _generate(self, way: Way, body: dict[str, Any], faults: Faults) -> None:
        server = self.server
        if "wants_key" in faults:
            self.reply_json(401, {"error": "Unauthorized"})
            return
        if "web_page" in faults:
            self.reply(200, b"<html>Who are you?</html>", "text/html")
            return
        if body.get("model") not in server.names:
            self.reply_json(404, {"error": {"message": f"no model {body.get('model')!r}"}})
            return
        bodies = way.split(body, faults)
        if len(bodies) > 1 and "one_prompt" in faults:
            raise prompt.BadRequest("Several prompts are not supported.")
        prompts = [prompt.prompt_of(way.chat, b, server.max_model_len, faults) for b in bodies]
        number = next(server.numbers)
        self._die(number, prompts, faults)
        begun = server.lifecycle.aborts  # before anybody can see that a request is under way
        for _ in bodies if "never_settle" not in faults else ():
            server.counters.begin()
        time.sleep(faults.number("slow") / 1000)
        server.lifecycle.wait(faults)
        if server.pool.enter(faults) and "preempted_wrong" in faults:
            faults = faults.with_one("wrong_kv")
        name = f"{'chatcmpl' if way.chat else 'cmpl'}-{os.getpid()}-{number}"
        with server.lock:
            parts = [
                self._part(way, name, at, bodies, ids, faults) for at, ids in enumerate(prompts)
            ]
        server.pool.leave()
        busy_ms = sum(max(len(part.done.tokens) - AT_ONCE, 0) for part in parts)
        if server.lifecycle.aborted_within(busy_ms / 1000, begun):
            parts = [replace(part, done=part.done.aborted()) for part in parts]
        told = self.headers.get("x-request-id")
        shown = f"{name.partition('-')[0]}-{told}" if told else name
        head = {"id": shown, "created": int(server.gateway.now(faults)), "model": server.name}
        self.cut, self.over_s = "cut_off" in faults, gateway.dribble_s(faults)
        if body.get("stream"):
            self.stream(_events(way, way.pieces(head, parts), faults))
        else:
            whole = spoil.answer(way.whole(head, parts), faults)
            self.reply_json(200, gateway.answer(whole, faults))
        for part in parts:
            _count(server.counters, part.done, faults)
            server.drafts.count(len(part.done.tokens), faults)

    def _die(self, number: int, prompts: list[list[int]], faults: Faults) -> None:
        if "die_on_request" in faults and number == faults.number("die_on_request"):
            die(f"request {number} was one too many")
        if "dies" in faults:
            die("the engine is dead")
        lengths = [len(ids) for ids in prompts]
        if "die_on_length" in faults and faults.number("die_on_length") in lengths:
            die(f"a prompt of {faults.number('die_on_length')} tokens was one too many")

    def _part(
        self, way: Way, name: str, at: int, bodies: list[Any], ids: list[int], faults: Faults
    ) -> Part:
        engine, named = self.server.engine, f"{name}~{at}" if at else name
        done = engine.generate(named, ids, bodies[at], faults)
        if at and "first_for_all" in faults and done.params:
            engine.generate(named, bodies[0]["prompt"], bodies[0], faults)  # the first one's KV
            done.params.clear()
        if done.params.get("do_remote_prefill"):
            done.params["remote_prefill_cached_tokens"] = done.sources["local_cache_hit"]
        return Part(way.chat, bodies[at], ids, done)


def _events(way: Way, pieces: Iterator[dict[str, Any]], faults: Faults) -> Iterator[str]:
    told = (gateway.answer(spoil.answer(p, faults, streamed=True), faults) for p in pieces)
    events = [*map(json.dumps, told), *([] if way.ends_itself else ["[DONE]"])]
    yield from gateway.events(events[:-1] if "no_done" in faults else events, faults)


def _count(counters: Counters, done: Finished, faults: Faults) -> None:
    """After the answer, as vLLM may do it too."""
    time.sleep(faults.number("late") / 1000)
    if "counters_reset" in faults:
        counters.reset()
    if "never_settle" not in faults:
        counters.finish(done, faults)
    if "foreign" in faults:
        counters.finish_foreign()
