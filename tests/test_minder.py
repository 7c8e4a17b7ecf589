"""The process that minds a server: how it stops one, and what it says of its end."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from test_minder_samples import SLEEP, minded

DEAF = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEP}"
POLITE = f"""
import signal, sys, time
def bye(*_):
    time.sleep(0.2)
    print("bye")
    sys.exit(3)
signal.signal(signal.SIGTERM, bye)
{SLEEP}
"""


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("print('ready')", 0),
        ("raise SystemExit(7)", 7),
        ("import os; os.kill(os.getpid(), 9)", 128 + signal.SIGKILL),
    ],
)
def test_a_server_that_ends_by_itself_passes_its_exit_code_on(
    tmp_path: Path, code: str, expected: int
) -> None:
    with minded(tmp_path, code) as server:
        assert server.end() == expected
        assert not server.scratch.exists()
        assert server.shared.exists()


def test_output_of_both_kinds_is_appended_to_the_log(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("before\n")
    with minded(tmp_path, "import sys; print('out', flush=True); sys.exit('err')") as server:
        assert server.end() == 1
        assert server.log.read_text() == "before\nout\nerr\n"


@pytest.mark.parametrize("way", ["line", "signal"])
def test_a_stop_lets_the_server_end_in_its_own_way(tmp_path: Path, way: str) -> None:
    with minded(tmp_path, POLITE) as server:
        server.ready()
        if way == "line":
            server.say(b"stop\n")
        else:
            server.process.terminate()
        assert server.end() == 3
        assert server.log.read_text().split() == ["ready", "bye"]
        assert not server.scratch.exists()
        assert (server.shared / "socket").exists()


def test_a_server_that_will_not_end_is_killed_after_the_grace(tmp_path: Path) -> None:
    with minded(tmp_path, DEAF, grace=0.4) as server:
        server.ready()
        began = time.monotonic()
        server.say(b"stop\n")
        assert server.end() == 128 + signal.SIGKILL
        assert time.monotonic() - began >= 0.4
