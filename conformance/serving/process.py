"""A process of ours under a minder: started, watched, stopped, its log kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from conformance.errors import EnvironmentProblem
from conformance.serving import minder
from conformance.serving.rootcause import RootCause, find_root_cause

STOP_GRACE_S = 15.0


@dataclass
class ProcessPlan:
    """Everything decided before a process starts; ``shared_dirs`` go when it is orphaned."""

    what: str
    command: list[str]
    env: dict[str, str]
    log: Path
    shared_dirs: list[Path] = field(default_factory=list)


class Process:
    """Create, :meth:`start`, :meth:`stop`. Ends with the suite, however that ends."""

    def __init__(self, plan: ProcessPlan) -> None:
        self.plan = plan
        self._scratch: Path | None = None
        self._minder: subprocess.Popen[bytes] | None = None

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._minder is not None and self._minder.poll() is None

    @property
    def pid(self) -> int:
        """Process id of the minder above the process; 0 before the start."""
        return self._minder.pid if self._minder else 0

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
                f"cannot start the {self.plan.what}: {problem} (log: {self.plan.log})"
            ) from problem

    def _minder_command(self) -> list[str]:
        orphans = [part for path in self.plan.shared_dirs for part in ("--orphan-scratch", path)]
        return [
            *(sys.executable, "-I", "-S", minder.__file__, "--log", str(self.plan.log)),
            *("--grace", str(STOP_GRACE_S), "--scratch", str(self._scratch)),
            *map(str, orphans),
            *("--", *self.plan.command),
        ]

    def begin_stop(self) -> None:
        """Ask for the stop without waiting, so that several processes can end together."""
        if self._minder and self._minder.stdin and not self._minder.stdin.closed:
            try:
                self._minder.stdin.write(b"stop\n")
                self._minder.stdin.close()
            except BrokenPipeError:
                return

    def stop(self) -> None:
        """Stop the process and all it started; safe to call twice and before a start."""
        self.begin_stop()
        if self._minder:
            try:
                self._minder.wait(STOP_GRACE_S + minder.KILL_WAIT_S + 5)
            except subprocess.TimeoutExpired:
                self._minder.kill()
                self._minder.wait()

    def log_since(self, offset: int) -> str:
        """What was logged after the first ``offset`` bytes."""
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
        """Why the process ended, from its log."""
        return find_root_cause(self.plan.log)
