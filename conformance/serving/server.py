"""One vLLM server as a process: start, readiness, root cause, stop."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import httpx

from conformance.errors import EnvironmentProblem, ServerStartError
from conformance.metrics import Counters, scrape
from conformance.serving import minder
from conformance.serving.ports import Lease, is_open
from conformance.serving.rootcause import RootCause, find_root_cause
from conformance.transport import tls

Role = Literal["prefill", "decode", "reference"]

STOP_GRACE_S = 15.0
# A worker that dies takes its API server with it, but not in the same instant.
DEATH_WAIT_S = 20.0
POLL_S = 0.1


@dataclass
class ServerPlan:
    """Everything decided before a server starts."""

    role: Role
    model: str
    command: list[str]
    env: dict[str, str]
    port: Lease
    log: Path
    shared_dirs: list[Path] = field(default_factory=list)


class Server:
    """A server process of ours. Create, :meth:`start`, wait with :func:`wait_ready`, stop."""

    def __init__(self, plan: ServerPlan) -> None:
        self.plan = plan
        self.role = plan.role
        self.model = plan.model
        self.url = f"http://127.0.0.1:{plan.port.port}"
        self.block_size = 0
        self._scratch: Path | None = None
        self._minder: subprocess.Popen[bytes] | None = None

    @property
    def alive(self) -> bool:
        """Whether the server's process runs."""
        return self._minder is not None and self._minder.poll() is None

    def start(self) -> None:
        """Spawn the process; returns at once."""
        # Short on purpose: vLLM puts Unix sockets below TMPDIR, whose paths end at 107 bytes.
        self._scratch = Path(tempfile.mkdtemp(prefix="kvc-"))
        env = {**os.environ, **self.plan.env, "TMPDIR": str(self._scratch)}
        try:
            self.plan.log.parent.mkdir(parents=True, exist_ok=True)
            self.plan.log.write_bytes(b"")  # a replay into the same folder starts a new log
            self._minder = subprocess.Popen(
                self._minder_command(),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=env,
                start_new_session=True,
            )
        except OSError as problem:
            shutil.rmtree(self._scratch, ignore_errors=True)
            raise EnvironmentProblem(
                f"cannot start the {self.role} server: {problem} (log: {self.plan.log})"
            ) from problem

    def _minder_command(self) -> list[str]:
        orphans = [part for path in self.plan.shared_dirs for part in ("--orphan-scratch", path)]
        return [
            *(sys.executable, "-I", "-S", minder.__file__, "--log", str(self.plan.log)),
            *("--grace", str(STOP_GRACE_S), "--scratch", str(self._scratch)),
            *map(str, orphans),
            *("--", *self.plan.command),
        ]

    @property
    def pid(self) -> int:
        """Process id of the minder above the server; 0 before the start."""
        return self._minder.pid if self._minder else 0

    def begin_stop(self) -> None:
        """Ask for the stop without waiting, so that several servers can end together."""
        if self._minder and self._minder.stdin and not self._minder.stdin.closed:
            try:
                self._minder.stdin.write(b"stop\n")
                self._minder.stdin.close()
            except BrokenPipeError:
                return

    def stop(self) -> None:
        """Stop the server and all it started; safe to call twice and before a start."""
        self.begin_stop()
        if self._minder:
            try:
                self._minder.wait(STOP_GRACE_S + minder.KILL_WAIT_S + 5)
            except subprocess.TimeoutExpired:
                self._minder.kill()
                self._minder.wait()
        self.plan.port.release()

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

    def counters(self) -> Counters:
        """Every sample of ``/metrics`` now."""
        return scrape(self.url)

    def log_since(self, offset: int) -> str:
        """What the server logged after the first ``offset`` bytes of its log."""
        try:
            with self.plan.log.open("rb") as file:
                file.seek(offset)
                return file.read().decode(errors="replace")
        except OSError:
            return ""

    def log_size(self) -> int:
        """Bytes logged so far."""
        return self.plan.log.stat().st_size if self.plan.log.exists() else 0

    def root_cause(self) -> RootCause:
        """Why the server ended, from its log."""
        return find_root_cause(self.plan.log)


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
                waiting.remove(server)
        if waiting and time.monotonic() > deadline:
            raise _too_slow(waiting[0], limit_s)
        time.sleep(POLL_S)


def _ready(server: Server) -> bool:
    if not (is_open(server.plan.port.port) and server.healthy()):
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
    )


def _too_slow(server: Server, limit_s: float) -> ServerStartError:
    cause = server.root_cause()
    return ServerStartError(
        f"the {server.role} server was not ready within {limit_s:.0f} s; its last word: "
        f"{cause.line} [log: {server.plan.log}]. Give it longer with --start-timeout",
        excerpt=cause.excerpt,
    )
