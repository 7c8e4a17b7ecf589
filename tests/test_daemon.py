"""Daemons: ready when they answer, given up when they die or take too long."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conformance.errors import ServerStartError
from conformance.serving.daemon import DaemonProcess
from conformance.serving.ports import DEFAULT_RANGE, PortRange
from conformance.serving.process import ProcessPlan

LISTENS = """
import socket, sys, time
time.sleep(0.2)
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    server.accept()
"""
# Answers 503 twice before it is ready, and never without being asked.
WARMS_UP = """
import socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
asked = 0
while True:
    peer, _ = server.accept()
    line = peer.makefile("rb").readline()
    if line:
        asked += line.startswith(b"GET /ready ")
        status = "200 OK" if asked > 2 else "503 Not Yet"
        print(f"answered {status}", flush=True)
        peer.sendall(f"HTTP/1.1 {status}\\r\\nContent-Length: 0\\r\\n\\r\\n".encode())
    peer.close()
"""
DIES = "raise RuntimeError('no license for this host')"
DEAF = "import time; print('waiting for a quorum', flush=True); time.sleep(600)"


@contextmanager
def started(
    folder: Path, code: str, path: str | None = None, limit_s: float = 30
) -> Iterator[DaemonProcess]:
    lease = PortRange.parse(DEFAULT_RANGE).lease()
    plan = ProcessPlan(
        what="daemon master",
        command=[sys.executable, "-S", "-c", code, str(lease.port)],
        env={},
        log=folder / "logs" / "daemon.log",
    )
    daemon = DaemonProcess(plan, lease.port, path, limit_s)
    daemon.start()
    try:
        yield daemon
    finally:
        daemon.stop()
        lease.release()


def failure(daemon: DaemonProcess) -> ServerStartError:
    with pytest.raises(ServerStartError) as caught:
        daemon.wait_ready()
    assert str(caught.value).startswith("the daemon master ")
    assert f"[log: {daemon.plan.log}]" in str(caught.value)
    # The connector is not to blame for a daemon of its environment.
    assert not caught.value.blames_connector
    return caught.value


def test_a_daemon_is_ready_once_it_listens_and_gone_once_stopped(tmp_path: Path) -> None:
    with started(tmp_path, LISTENS) as daemon:
        daemon.wait_ready()
        assert daemon.alive
    assert not daemon.alive


def test_a_daemon_with_a_path_is_ready_once_that_answers(tmp_path: Path) -> None:
    with started(tmp_path, WARMS_UP, path="/ready") as daemon:
        daemon.wait_ready()
        log = daemon.plan.log.read_text().splitlines()
    assert log == ["answered 503 Not Yet"] * 2 + ["answered 200 OK"]


def test_another_path_is_not_the_one_that_answers(tmp_path: Path) -> None:
    with started(tmp_path, WARMS_UP, path="/other", limit_s=1) as daemon:
        assert "was not ready within 1 s" in str(failure(daemon))


def test_a_daemon_that_dies_is_given_up_at_once_in_its_own_words(tmp_path: Path) -> None:
    began = time.monotonic()
    with started(tmp_path, DIES, limit_s=600) as daemon:
        problem = failure(daemon)
    assert time.monotonic() - began < 60
    assert "died while starting: RuntimeError: no license for this host" in str(problem)
    assert problem.root_cause == "RuntimeError: no license for this host"
    assert "Traceback" in problem.excerpt


def test_a_daemon_that_never_listens_is_given_up_after_its_limit(tmp_path: Path) -> None:
    with started(tmp_path, DEAF, limit_s=1) as daemon:
        problem = failure(daemon)
    assert "was not ready within 1 s: waiting for a quorum" in str(problem)
