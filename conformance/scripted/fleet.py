"""A fleet on the scripted engine, in the caller's own process, with a record of what it started."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conformance.clock import RunClock
from conformance.crashes import CrashLedger
from conformance.fleet import Fleet
from conformance.options import RunOptions
from conformance.report import ServerStart
from conformance.scripted.environment import model_folder, server_python
from conformance.serving.engine import Engines
from conformance.serving.launcher import Launcher


class Place:
    """A fleet and all that it needs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.model = str(model_folder(root / "model"))
        self.starts: list[ServerStart] = []
        options = RunOptions(report=root / "report", start_timeout_s=60)
        engines = Engines(str(server_python(root / "environment")), {})
        clock = RunClock()
        launcher = Launcher(options, engines, [], clock, self.starts.append)
        self.fleet = Fleet(options, launcher, clock, CrashLedger(root / "crashes.json"))

    def roles_since(self, before: int) -> list[str]:
        """What was started after the first so many servers, by role."""
        return [start.role for start in self.starts[before:]]


@contextmanager
def place(root: Path) -> Iterator[Place]:
    """A fleet that is closed at the end, and then has left nothing."""
    (root / "tmp").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(root / "tmp"))
        made = Place(root)
        yield made
        made.fleet.close()
    assert list((root / "tmp").iterdir()) == []
