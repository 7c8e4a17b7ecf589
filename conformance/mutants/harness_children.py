"""Runs of the command line in processes of their own, some at once; none outlives who waits."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from conformance.errors import SuiteError
from conformance.scripted.suite import Running, Suite

# One for each of two cores; most of a run's time is spent starting servers and waiting.
AT_ONCE = 2
RUN_LIMIT_S = 400.0
# What a run that is interrupted needs to stop its servers.
STOP_LIMIT_S = 30.0
POLL_S = 0.1


@dataclass
class Child:
    """One run: where, with which words, on servers with which fault, on which Python."""

    root: Path
    words: Sequence[str]
    fault: str
    python: str = ""
    _running: Running | None = field(default=None, init=False)
    _deadline: float = field(default=0.0, init=False)

    @property
    def report(self) -> Path:
        """The folder of its report."""
        return self.root / "report"

    def start(self) -> None:
        """Begin, without waiting."""
        self.root.mkdir(parents=True)
        self._running = Suite(self.root, self.python).start(*self.words, fault=self.fault)
        self._deadline = time.monotonic() + RUN_LIMIT_S

    def ended(self) -> bool:
        """Whether it has come to its end. Raises :class:`SuiteError` for one that hangs."""
        assert self._running is not None
        if self._running.process.is_alive() and time.monotonic() > self._deadline:
            raise SuiteError(f"a run of the selftest hangs; it said: {self.said(1500)}")
        return not self._running.process.is_alive()

    def stop(self) -> None:
        """As Ctrl-C does, and by force where that is not heard."""
        process = self._running.process if self._running else None
        if process is None or not process.is_alive():
            return
        with suppress(ProcessLookupError):
            self._running.signal(signal.SIGINT)  # type: ignore[union-attr]
        process.join(STOP_LIMIT_S)
        if process.is_alive():
            process.kill()
            process.join()

    @property
    def crashed(self) -> bool:
        """Whether it ended in an error that nobody foresaw, be it after its report."""
        return self._running is not None and "Traceback (most" in self._running.err.read_text()

    def said(self, most: int) -> str:
        """The last of its words."""
        running = self._running
        words = running.out.read_text() + running.err.read_text() if running else ""
        return words[-most:]


def each_ended(children: Sequence[Child]) -> Iterator[tuple[int, Child]]:
    """Each with its number, as it ends. When nobody waits any more, all are stopped."""
    left, going = list(enumerate(children)), list[tuple[int, Child]]()
    try:
        while left or going:
            while left and len(going) < AT_ONCE:
                going.append(left.pop(0))
                going[-1][1].start()
            for one in [one for one in going if one[1].ended()]:
                going.remove(one)
                yield one
            time.sleep(POLL_S)
    finally:
        for _, child in going:
            child.stop()
