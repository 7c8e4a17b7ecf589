"""A request that brought a server down twice is not sent a third time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conformance.client import Client
from conformance.clock import RunClock
from conformance.crashes import CrashLedger
from conformance.errors import CheckFailed, ServerDied
from conformance.pair import completion
from conformance.scripted import faults
from conformance.scripted.environment import model_folder, server_python
from conformance.serving.ports import DEFAULT_RANGE, PortRange
from conformance.serving.server import Server, ServerPlan, wait_ready

pytestmark = pytest.mark.timeout(120)

DEADLY = completion(list(range(17)))
HARMLESS = completion(list(range(18)))


def test_a_request_that_killed_twice_is_not_sent_again(tmp_path: Path) -> None:
    ledger = CrashLedger(tmp_path / "crashes.json")
    python = server_python(tmp_path / "environment")
    for number in (1, 2):
        with running(tmp_path / f"{number}.log", python) as server:
            client = Client(server, RunClock(), ledger, "nixl × model")
            with pytest.raises(ServerDied, match="a prompt of 17 tokens was one too many"):
                client.ask("completions", DEADLY)
            client.close()
    with running(tmp_path / "3.log", python) as server:
        client = Client(server, RunClock(), ledger, "nixl × model")
        with pytest.raises(CheckFailed, match=r"^not sent: this request brought .* down 2 times"):
            client.ask("completions", DEADLY)
        with pytest.raises(CheckFailed, match=r"^not sent"):
            client.stream("completions", {**DEADLY, "kv_transfer_params": {"fresh": 1}})
        assert client.ask("completions", HARMLESS).token_ids
        assert server.alive
        client.close()


@contextmanager
def running(log: Path, python: Path) -> Iterator[Server]:
    """A server that dies at every prompt of 17 tokens."""
    port = PortRange.parse(DEFAULT_RANGE).lease()
    model = model_folder(log.parent / "model")
    command = [str(python), "-m", "vllm.entrypoints.openai.api_server", "--model", str(model)]
    command += ["--port", str(port.port), "--served-model-name", "model"]
    env = {faults.VARIABLE: "die_on_length:17"}
    plan = ServerPlan("decode server", command, env, log, role="decode", model="model", port=port)
    server = Server(plan)
    server.start()
    try:
        wait_ready([server], 60)
        yield server
    finally:
        server.stop()
