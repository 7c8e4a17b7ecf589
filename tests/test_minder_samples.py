"""A minder with a small program in the place of a server, for the tests of the minder."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from conformance.serving import minder

PYTHON = (sys.executable, "-I", "-S")
LIMIT_S = 30.0
# A program that runs until it is ended.
SLEEP = "import time; print('ready', flush=True); time.sleep(60)"


class Minded:
    """The minder's process, and the log and folders it was given."""

    def __init__(self, folder: Path, code: str, arguments: tuple[object, ...], grace: float):
        self.log = folder / "server.log"
        self.scratch, self.shared = folder / "scratch", folder / "shared"
        for made in (self.scratch, self.shared):
            made.mkdir()
            (made / "socket").write_text("left behind")
        command = [*PYTHON, minder.__file__, "--log", self.log, "--grace", grace]
        command += ["--scratch", self.scratch, "--orphan-scratch", self.shared]
        command += ["--", *PYTHON, "-c", code, *arguments]
        self.process = subprocess.Popen(
            list(map(str, command)), stdin=subprocess.PIPE, start_new_session=True
        )

    def ready(self) -> list[str]:
        """What the program printed, once it has said that it is ready."""
        _wait_for(lambda: self.log.exists() and "ready" in self.log.read_text())
        return self.log.read_text().split()

    def say(self, text: bytes = b"") -> None:
        """Write to the minder's standard input and close it."""
        assert self.process.stdin is not None
        self.process.stdin.write(text)
        self.process.stdin.close()

    def end(self) -> int:
        """The exit code, once it has ended."""
        return self.process.wait(LIMIT_S)


@contextmanager
def minded(folder: Path, code: str, *arguments: object, grace: float = 20.0) -> Iterator[Minded]:
    """Starts a program under a minder; what the test leaves running is ended."""
    made = Minded(folder, code, arguments, grace)
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.process.kill()
            made.end()


def _wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
