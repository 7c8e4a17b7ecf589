"""Runs that do not end by themselves: what they had is kept, and nothing of theirs is left."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from conformance.errors import EnvironmentProblem
from conformance.report import NOT_REACHED
from conformance.scripted.suite import Running, Suite, until
from conformance.serving.ports import PortRange
from conformance.verdict import Verdict

pytestmark = pytest.mark.timeout(500)

RUN = ("--connector", "nixl", "--feature", "prompt-length")
LEAVES_A_MESS = "slow:20,spawn_children"
# A start of three servers on a busy machine; the run itself is told to stop at once.
UNTIL_FIRST_CELL_S = 90.0
UNTIL_NOTHING_IS_LEFT_S = 15.0


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path)


def test_ctrl_c_keeps_what_was_seen_and_leaves_nothing(suite: Suite) -> None:
    running = suite.start(*RUN, fault=LEAVES_A_MESS)
    ports, shared = after_first_cell(running)
    running.signal(signal.SIGINT)
    ended = running.wait()
    assert ended.code == 130
    report = ended.report
    assert report.state == "interrupted"
    assert set(report.verdicts()) == {Verdict.PASS, Verdict.NOT_RUN}
    unreached = [cell for cell in report.connectors[0].cells if cell.verdict is Verdict.NOT_RUN]
    assert {cell.message for cell in unreached} == {NOT_REACHED}
    assert "exit 130: interrupted" in ended.out
    assert "Traceback" not in ended.err
    assert remains(suite, ports, shared) == []


def test_ctrl_c_while_servers_start_leaves_nothing(suite: Suite) -> None:
    running = suite.start(*RUN, fault="decode:hang_at_start")
    assert until(lambda: len(suite.left_behind()) >= 6, UNTIL_FIRST_CELL_S)
    running.signal(signal.SIGINT)
    ended = running.wait()
    assert ended.code == 130
    assert set(ended.report.verdicts()) == {Verdict.NOT_RUN}
    assert remains(suite, [], []) == []


def test_kill_9_keeps_what_was_seen_and_leaves_nothing(suite: Suite) -> None:
    running = suite.start(*RUN, fault=LEAVES_A_MESS)
    ports, shared = after_first_cell(running)
    running.process.kill()
    until(lambda: not remains(suite, ports, shared), UNTIL_NOTHING_IS_LEFT_S)
    assert remains(suite, ports, shared) == []
    assert running.report.state == "running"
    assert running.report.verdicts().count(Verdict.PASS) >= 1


def test_a_full_disk_is_named_and_leaves_the_last_report(
    suite: Suite, small_disk: tuple[Path, Callable[[], None]]
) -> None:
    folder, fill = small_disk
    running = suite.start(*RUN, "--report", str(folder), fault="slow:20")
    running.folder = folder
    after_first_cell(running)
    fill()
    ended = running.wait()
    assert ended.code == 3
    assert f"cannot write {folder}/report.json: No space left on device" in ended.err
    assert "--report DIR" in ended.err
    assert "Traceback" not in ended.err
    assert ended.report.verdicts().count(Verdict.PASS) >= 1
    assert remains(suite, [], []) == []


@pytest.fixture
def small_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Path, Callable[[], None]]]:
    """A folder for a report, and what fills the disk it is on.

    Where no disk can be mounted, replacing a file fails as on a full one.
    """
    disk, full = tmp_path / "disk", tmp_path / "full"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    if not mounted:
        replace = os.replace

        def refuse(source: str, target: str) -> None:
            if full.exists() and str(target).startswith(str(disk)):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            replace(source, target)

        monkeypatch.setattr(os, "replace", refuse)
    yield disk / "report", lambda: fill_up(disk) if mounted else full.touch()
    if mounted:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def fill_up(disk: Path) -> None:
    """Leave no byte free."""
    with (disk / "filler").open("wb", buffering=0) as filler, suppress(OSError):
        while True:
            filler.write(b"0" * 4096)


def after_first_cell(running: Running) -> tuple[list[int], list[Path]]:
    """Once a cell is done: the ports in use, and files of ours in /dev/shm."""

    def done() -> bool:
        file = running.folder / "report.json"
        return file.exists() and Verdict.PASS in running.report.verdicts()

    assert until(done, UNTIL_FIRST_CELL_S), running.out.read_text()
    starts = running.report.servers
    ports = [int(start.command[start.command.index("--port") + 1]) for start in starts]
    pids = {line.split()[0] for line in running.suite.left_behind()}
    shared = [path for pid in pids if (path := Path(f"/dev/shm/fakevllm-{pid}")).exists()]
    return ports, shared


def remains(suite: Suite, ports: list[int], shared: list[Path]) -> list[str]:
    """Processes, held ports, shared memory and scratch folders that are still there."""
    held = [f"port {port}" for port in ports if not is_free(port)]
    files = [*(suite.root / "tmp").glob("kvc-*"), *(path for path in shared if path.exists())]
    return [*suite.left_behind(), *held, *map(str, files)]


def is_free(port: int) -> bool:
    """Whether the port could be leased again."""
    try:
        PortRange(port, port).lease().release()
    except EnvironmentProblem:
        return False
    return True
