"""The process that minds a server: what it cleans up, and what it leaves alone."""

from __future__ import annotations

import mmap
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from test_minder_samples import SLEEP, Minded, minded

FAMILY = """
import subprocess, sys, time
own = subprocess.Popen(["sleep", "60"], start_new_session=True)
print(own.pid, flush=True)
subprocess.run(["sh", "-c", "setsid sleep 60 >/dev/null 2>&1 & echo $!"])
print("ready", flush=True)
"""
MAPPER = """
import mmap, sys, time
maps = []
for name in sys.argv[1:]:
    with open(name, "r+b") as file:
        maps.append(mmap.mmap(file.fileno(), 4096))
print("ready", flush=True)
time.sleep(60)
"""
BUSY_MAPPER = f"""
import os, threading
def open_and_close():
    while True:
        for number in [os.open("/dev/null", os.O_RDONLY) for _ in range(30)]:
            os.close(number)
threading.Thread(target=open_and_close, daemon=True).start()
{MAPPER}
"""


def family(server: Minded) -> list[psutil.Process]:
    """The processes whose ids the program printed."""
    return [psutil.Process(int(word)) for word in server.ready() if word.isdigit()]


@pytest.fixture
def shared_files() -> Iterator[list[Path]]:
    """Three files in shared memory."""
    if not Path("/dev/shm").is_dir():
        pytest.skip("needs /dev/shm")
    paths = [Path(f"/dev/shm/kvc-test-{uuid.uuid4().hex}") for _ in range(3)]
    for path in paths:
        path.write_bytes(bytes(4096))
    yield paths
    for path in paths:
        path.unlink(missing_ok=True)


def test_the_end_of_the_suite_ends_the_server_and_removes_what_it_shared(tmp_path: Path) -> None:
    with minded(tmp_path, SLEEP) as server:
        server.ready()
        child = psutil.Process(server.process.pid).children()[0]
        server.say()
        server.end()
        assert not child.is_running()
        assert not server.scratch.exists()
        assert not server.shared.exists()


def test_daemons_of_the_server_end_and_bystanders_do_not(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as bystander:
        with minded(tmp_path, f"{FAMILY}time.sleep(60)") as server:
            daemons = family(server)
            alive = [daemon.is_running() for daemon in daemons]
            server.say(b"stop\n")
            server.end()
        spared = bystander.poll() is None
        bystander.kill()
    assert alive == [True, True]
    assert [daemon.is_running() for daemon in daemons] == [False, False]
    assert spared


def test_what_a_crashed_server_leaves_running_is_ended(tmp_path: Path) -> None:
    with minded(tmp_path, f"{FAMILY}sys.exit(5)") as server:
        assert server.end() == 5
        daemons = [int(word) for word in server.ready() if word.isdigit()]
    assert [psutil.pid_exists(pid) for pid in daemons] == [False, False]


def test_shared_memory_goes_unless_another_process_uses_it(
    tmp_path: Path, shared_files: list[Path]
) -> None:
    own, common, foreign = shared_files
    with common.open("r+b") as file, mmap.mmap(file.fileno(), 4096):
        with minded(tmp_path, MAPPER, own, common) as server:
            server.ready()
            server.say(b"stop\n")
            server.end()
        assert [path.exists() for path in (own, common, foreign)] == [False, True, True]


def test_files_that_a_server_opens_and_closes_hide_nothing_it_shares(
    tmp_path: Path, shared_files: list[Path]
) -> None:
    with minded(tmp_path, BUSY_MAPPER, *shared_files) as server:
        server.ready()
        server.say(b"stop\n")
        server.end()
    assert [path.exists() for path in shared_files] == [False] * 3
