"""HF3FS: its metadata server starts as a daemon, and its shim uses what it is configured with."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from conformance.placeholders import fill
from conformance.profile import Profile
from conformance.profile_file import builtin_profiles
from conformance.serving.daemon import DaemonProcess
from conformance.serving.leases import Leases
from conformance.serving.ports import PortRange
from conformance.serving.process import ProcessPlan
from engine.conftest import Child

pytestmark = pytest.mark.timeout(400)  # the server's module imports vLLM


@pytest.fixture
def leases(tmp_path: Path) -> Iterator[Leases]:
    profile = builtin_profiles()["hf3fs"]
    (tmp_path / "shared").mkdir()
    found = Leases(profile, sys.executable, tmp_path / "shared", PortRange.parse("20000-29999"))
    found.prepare()
    yield found
    found.release()


def daemon_of(profile: Profile, leases: Leases, log: Path) -> tuple[DaemonProcess, int]:
    (daemon,) = profile.daemons
    port = int(leases.shared["port", daemon.ready_port])
    command = [str(part) for part in fill(daemon.command, leases.shared)]
    plan = ProcessPlan("daemon hf3fs-metadata", command, {}, log, [leases.root])
    return DaemonProcess(plan, port, daemon.ready_path, daemon.start_limit_s), port


def test_its_metadata_server_keeps_where_blocks_are(
    engine_child: Child, leases: Leases, tmp_path: Path
) -> None:
    daemon, port = daemon_of(leases.profile, leases, tmp_path / "daemon.log")
    url = f"http://127.0.0.1:{port}"
    try:
        daemon.start()
        daemon.wait_ready()
        post(f"{url}/rank/0/initialize", {"num_pages": 4, "role": "worker"})
        allocated = post(f"{url}/keys/batch_allocate", {"rank": 0, "keys": [["block", ""]]})
        page = allocated["results"][0][1]
        post(f"{url}/keys/confirm_write", {"rank": 0, "confirmations": [["block", page]]})
        assert post(f"{url}/keys/batch_exists", {"keys": ["block", "other"]}) == {
            "exists": [True, False]
        }
    finally:
        daemon.begin_stop()
        daemon.stop()


def test_its_shim_refuses_a_mock_and_goes_where_it_is_configured_to(engine_child: Child) -> None:
    told = engine_child(Path(__file__).parent / "hf3fs_child.py", "http://127.0.0.1:20001")
    assert told["as_shipped"] == "http://localhost:18000"
    assert "mock" in told["with_mock"]
    assert told["configured"] == "http://127.0.0.1:20001"


def post(url: str, body: object) -> dict[str, list[list[object]]]:
    answer = httpx.post(url, json=body, timeout=30, trust_env=False)
    assert answer.status_code in (200, 204), answer.text
    found: dict[str, list[list[object]]] = answer.json() if answer.content else {}
    return found
