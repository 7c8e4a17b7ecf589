"""Stands between the suite and one server, and outlives neither.

Run as a script with nothing but the standard library. The suite holds the other end of this
process's standard input: when the suite ends, however it ends (``kill -9`` included), the pipe
closes and everything the server started is stopped, its shared memory and scratch folders
removed. A line ``stop`` asks for the same in the ordinary way.

Exit code: the server's own, or 128 + signal.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
POLL_S = 0.1
KILL_WAIT_S = 10.0
NOTE_SHARED_S = 2.0


def main() -> int:
    """Mind one server until it ends or has to be ended."""
    options = _arguments()
    _prctl(PR_SET_CHILD_SUBREAPER, 1)  # orphaned grandchildren become ours, so we find them
    stopping = _Stop()
    child = _spawn(options)
    shared: set[str] = set()
    reason = _watch(child, stopping, shared)
    _end_all(child, options.grace if reason != "ended" else 0.0, shared)
    doomed = list(options.scratch)
    if reason == "orphaned":
        doomed += options.orphan_scratch
    for folder in doomed:
        shutil.rmtree(folder, ignore_errors=True)
    code = child.returncode if child.returncode is not None else -signal.SIGKILL
    return code if code >= 0 else 128 - code


class _Stop:
    """SIGTERM and SIGINT ask for an ordinary stop."""

    asked = False

    def __init__(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._ask)

    def _ask(self, *_: object) -> None:
        self.asked = True


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log", required=True)
    parser.add_argument("--grace", type=float, default=10.0)
    parser.add_argument("--scratch", action="append", default=[])
    parser.add_argument("--orphan-scratch", action="append", default=[])
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    options.command = options.command[options.command[:1] == ["--"] :]
    return options


def _spawn(options: argparse.Namespace) -> subprocess.Popen[bytes]:
    with open(options.log, "ab", buffering=0) as log:
        return subprocess.Popen(
            options.command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=lambda: _prctl(PR_SET_PDEATHSIG, signal.SIGKILL),
        )


def _watch(child: subprocess.Popen[bytes], stopping: _Stop, shared: set[str]) -> str:
    """Until the server ends (``ended``), a stop is asked for, or the suite is gone.

    The shared memory in use is noted now and then: a dead process no longer tells.
    """
    noted = 0.0
    while True:
        if time.monotonic() - noted > NOTE_SHARED_S:
            shared |= _shared_memory_of(_descendants())
            noted = time.monotonic()
        if child.poll() is not None:
            return "ended"
        if stopping.asked:
            return "stopped"
        readable, _, _ = select.select([sys.stdin], [], [], POLL_S)
        if readable:
            line = os.read(sys.stdin.fileno(), 64)
            return "stopped" if line.startswith(b"stop") else "orphaned"


def _end_all(child: subprocess.Popen[bytes], grace: float, shared: set[str]) -> None:
    """SIGTERM to the server's group, then SIGKILL to whatever is left of its family."""
    shared |= _shared_memory_of(_descendants())
    if child.poll() is None:
        _signal_group(child.pid, signal.SIGTERM)
        _wait_until(lambda: child.poll() is not None, grace)
    shared |= _shared_memory_of(_descendants())
    _signal_group(child.pid, signal.SIGKILL)
    _wait_until(lambda: not _kill_descendants(child), KILL_WAIT_S)
    for path in shared - (_shared_memory_of(_all_pids()) if shared else set()):
        Path(path).unlink(missing_ok=True)


def _kill_descendants(child: subprocess.Popen[bytes]) -> set[int]:
    alive = _descendants()
    for pid in alive:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    child.poll()
    _reap(alive - {child.pid})
    return _descendants()


def _reap(pids: set[int]) -> None:
    for pid in pids:
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            continue


def _signal_group(leader: int, number: int) -> None:
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        return


def _descendants() -> set[int]:
    """Every process below this one, zombies that wait for us included."""
    parents = {pid: parent for pid in _all_pids() if (parent := _parent(pid)) is not None}
    family, grew = {os.getpid()}, True
    while grew:
        found = {pid for pid, parent in parents.items() if parent in family} - family
        family |= found
        grew = bool(found)
    return family - {os.getpid()}


def _all_pids() -> set[int]:
    try:
        return {int(name) for name in os.listdir("/proc") if name.isdigit()}
    except OSError:
        return set()


def _parent(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[1])


def _shared_memory_of(pids: set[int]) -> set[str]:
    """Files under /dev/shm that the processes map or hold open."""
    names = {name for pid in pids for name in (*_mapped(pid), *_open(pid))}
    return {n for n in names if n.startswith("/dev/shm/") and not n.endswith("(deleted)")}


def _mapped(pid: int) -> list[str]:
    try:
        lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    except OSError:
        return []
    return [line.split(maxsplit=5)[-1] for line in lines if "/dev/shm/" in line]


def _open(pid: int) -> list[str]:
    """A busy server closes files while they are listed: those are left out, and no others."""
    found = []
    with suppress(OSError):
        for number in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                found.append(os.readlink(f"/proc/{pid}/fd/{number}"))
    return found


def _wait_until(done: object, limit_s: float) -> None:
    deadline = time.monotonic() + limit_s
    while not done() and time.monotonic() < deadline:  # type: ignore[operator]
        time.sleep(POLL_S / 2)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main())
