"""Runs of the suite on the scripted environment, and what they leave."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

from conformance.models import MANIFEST, recipes
from conformance.report import Cell, Report, load
from conformance.scripted import process
from conformance.scripted.environment import model_folder, server_python

# Far above what a run takes, on a machine that is busy with something else.
LIMIT_S = 400.0


@dataclass
class Suite:
    """The command line in a folder of its own, in which everything it makes has to lie.

    ``interpreter``: what the scripted servers run on, if not what runs this.
    """

    root: Path
    interpreter: str = ""
    python: Path = field(init=False)
    model: Path = field(init=False)

    def __post_init__(self) -> None:
        self.python = server_python(self.root / "environment", python=self.interpreter)
        self.model = model_folder(self.root / "model")
        (self.root / "tmp").mkdir()

    def pretend_built(self, *names: str) -> None:
        """Recipes' models count as built: nothing is read from them here."""
        for name in names:
            folder = self.root / "cache" / "models" / f"{name}-{recipes()[name].digest}"
            folder.mkdir(parents=True)
            (folder / MANIFEST).write_text("{}")

    def run(self, *arguments: str, fault: str = "", name: str = "report") -> Ended:
        """``kv-conformance run`` on the scripted environment, to its end."""
        return self.start(*arguments, fault=fault, name=name).wait()

    def start(self, *arguments: str, fault: str = "", name: str = "report") -> Running:
        """The same, without waiting."""
        folder = self.root / name
        given = ["--model", str(self.model)]
        if "--server-python" not in arguments:
            given += ["--server-python", str(self.python)]
        given += ["--real-model", "none", "--report", str(folder)]
        return self.command("run", *given, *arguments, fault=fault, folder=folder)

    def command(self, *arguments: str, fault: str = "", folder: Path | None = None) -> Running:
        """Any command line."""
        number = len(list(self.root.glob("*.out")))
        out, err = self.root / f"{number}.out", self.root / f"{number}.err"
        out.touch()
        started = process.start(self.root, arguments, fault, out, err)
        return Running(started, self, folder or self.root / "report", out, err)

    def left_behind(self) -> list[str]:
        """Processes that were started below this folder and still run, with their command lines."""
        mark = f"TMPDIR={self.root}/tmp".encode()
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            # Gone meanwhile, or a zombie, whose environment is empty.
            with suppress(OSError):
                if mark in Path(f"/proc/{pid}/environ").read_bytes():
                    command = Path(f"/proc/{pid}/cmdline").read_bytes()
                    found.append(f"{pid} {command.decode().replace(chr(0), ' ')}")
        return found


@dataclass
class Running:
    """A command line that was started."""

    process: BaseProcess
    suite: Suite
    folder: Path
    out: Path
    err: Path

    @property
    def report(self) -> Report:
        """The report as it stands."""
        return load(self.folder)

    def signal(self, number: int) -> None:
        """To the whole group, as a terminal does."""
        assert self.process.pid is not None
        os.killpg(self.process.pid, number)

    def most_at_once(self) -> int:
        """The most processes that ran at the same time, looked at until the end."""
        most = 0
        while self.process.is_alive():
            most = max(most, len(self.suite.left_behind()))
            time.sleep(0.1)
        return most

    def wait(self) -> Ended:
        """Until it ended. A run that hangs is killed and is an error."""
        self.process.join(LIMIT_S)
        if self.process.is_alive():
            self.process.kill()
            raise AssertionError(f"the run hangs; it said:\n{self.out.read_text()}")
        return Ended(self.process.exitcode or 0, self.folder, self.out, self.err)


@dataclass
class Ended:
    """What a command line left."""

    code: int
    folder: Path
    out_file: Path
    err_file: Path

    @property
    def out(self) -> str:
        """Standard output."""
        return self.out_file.read_text()

    @property
    def err(self) -> str:
        """Standard error."""
        return self.err_file.read_text()

    @property
    def report(self) -> Report:
        """Its report, read as any program would."""
        return load(self.folder)

    def cell(self, connector: str, check: str) -> Cell:
        """One cell of it."""
        column = self.report.connector(connector)
        found = column.cell(check) if column else None
        assert found is not None, f"{connector}/{check} is not in {self.folder}"
        return found

    def verdicts(self) -> dict[str, str]:
        """Every cell's verdict."""
        return {f"{c.name}/{x.check}": x.verdict for c in self.report.connectors for x in c.cells}


def asking(checks: Iterable[str]) -> list[str]:
    """The words by which these checks are chosen."""
    return [part for check in checks for part in ("--check", check)]


def until(holds: Callable[[], bool], limit_s: float = 20.0) -> bool:
    """Whether it came to hold within the limit."""
    deadline = time.monotonic() + limit_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True
