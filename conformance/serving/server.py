"""One vLLM server of ours: readiness, health, metrics, stop."""

from __future__ import annotations

import time
from dataclasses import dataclass

import httpx

from conformance.errors import ServerStartError
from conformance.metrics import Counters, scrape
from conformance.serving.ports import Lease, is_open
from conformance.serving.process import Process, ProcessPlan
from conformance.serving.rootcause import survived
from conformance.serving.served import ServerRole
from conformance.transport import tls

# A worker that dies takes its API server with it, but not in the same instant.
DEATH_WAIT_S = 20.0
POLL_S = 0.1


@dataclass
class ServerPlan(ProcessPlan):
    """A server's process, the model it serves and the port it is reached at."""

    role: ServerRole = "reference"
    model: str = ""
    port: Lease | None = None


class Server(Process):
    """A server process of ours. Create, :meth:`start`, wait with :func:`wait_ready`, stop."""

    def __init__(self, plan: ServerPlan) -> None:
        super().__init__(plan)
        assert plan.port is not None
        self.port = plan.port
        self.role = plan.role
        self.model = plan.model
        self.url = f"http://127.0.0.1:{self.port.port}"
        self.block_size = 0
        self.headers: dict[str, str] = {}
        self.survived = ""

    def stop(self) -> None:
        """Stop the server and all it started, and give its port back."""
        super().stop()
        self.port.release()

    def wait_for_death(self, limit_s: float = DEATH_WAIT_S) -> bool:
        """Whether the server ends within the limit, as one with a dead engine does."""
        deadline = time.monotonic() + limit_s
        while self.alive and time.monotonic() < deadline:
            if self.healthy():
                return False
            time.sleep(POLL_S)
        return not self.alive

    def healthy(self) -> bool:
        """Whether ``/health`` answers 200 now."""
        try:
            return httpx.get(f"{self.url}/health", timeout=5, verify=tls()).status_code == 200
        except httpx.HTTPError:
            return False

    def counters(self, headers: dict[str, str] | None = None) -> Counters:
        """Every sample of ``/metrics`` now."""
        return scrape(self.url, headers)


def wait_ready(servers: list[Server], limit_s: float) -> None:
    """Until each server is alive, listens, is healthy and has answered one real completion.

    Raises :class:`ServerStartError` at once when one dies, and when the limit is over.
    """
    deadline = time.monotonic() + limit_s
    waiting = list(servers)
    while waiting:
        for server in list(waiting):
            if not server.alive:
                raise _died_at_start(server)
            if _ready(server):
                server.block_size = server.counters().block_size()
                server.survived = survived(server.log_since(0))
                waiting.remove(server)
        if waiting and time.monotonic() > deadline:
            raise _too_slow(waiting, limit_s)
        time.sleep(POLL_S)


def _ready(server: Server) -> bool:
    if not (is_open(server.port.port) and server.healthy()):
        return False
    body = {"model": server.model, "prompt": "Are you ready?", "max_tokens": 1}
    try:
        answer = httpx.post(f"{server.url}/v1/completions", json=body, timeout=120, verify=tls())
    except httpx.HTTPError:
        return False
    return answer.status_code == 200 and bool(answer.json().get("choices"))


def _died_at_start(server: Server) -> ServerStartError:
    cause = server.root_cause()
    advice = " (the machine's fault, not the connector's)" if cause.environment else ""
    return ServerStartError(
        f"the {server.role} server died while starting{advice}: {cause.line} "
        f"[log: {server.plan.log}]",
        cause.line,
        cause.excerpt,
        blames_connector=server.role != "reference" and not cause.environment,
        environment=cause.environment,
        log=server.plan.log,
    )


def _too_slow(waiting: list[Server], limit_s: float) -> ServerStartError:
    """The connector hangs if servers without one were ready within the same limit."""
    server, cause = waiting[0], waiting[0].root_cause()
    return ServerStartError(
        f"the {server.role} server was not ready within {limit_s:.0f} s; its last word: "
        f"{cause.line} [log: {server.plan.log}]. Give it longer with --start-timeout",
        excerpt=cause.excerpt,
        blames_connector=all(late.role != "reference" for late in waiting),
    )
