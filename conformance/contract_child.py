"""Runs contract classes with pytest in another Python and reads what became of each clause."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import conformance
from conformance.errors import EnvironmentProblem, UsageError

PACKAGE = Path(conformance.__file__).parent
CONTRACTS = PACKAGE / "contracts"
POLL_S = 0.2
NEEDED = "import importlib.util as u; print(*(n for n in {names!r} if not u.find_spec(n)))"
# Enough to be one's own engine on a shared machine: no network, one thread, this host.
QUIET = {
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_HOST_IP": "127.0.0.1",
    "PYTHONHASHSEED": "0",
}


@dataclass(frozen=True)
class ClauseResult:
    """What became of one clause; ``verdict`` is one of ``conformance.verdict.Verdict``."""

    contract: str
    clause: str
    requirement: str
    verdict: str
    message: str


def run_contracts(
    python: str,
    target: str,
    told: Callable[[ClauseResult], None] | None = None,
    env: Mapping[str, str] | None = None,
    log: Path | None = None,
) -> list[ClauseResult]:
    """Run the contract classes in ``target`` (a file, as pytest names it) under ``python``.

    ``told`` hears of each clause as it ends. Everything pytest and the engine print goes to
    ``log``. A process that hangs or dies makes the clause it was at a ``fail``.
    """
    with TemporaryDirectory(prefix="kv-contract-") as name:
        folder = Path(name)
        log = log or folder / "log"
        report = folder / "report"
        report.touch()
        command = _command(python, target, folder, report)
        with log.open("wb") as output, _started(command, folder, env, output) as child:
            lines = _Lines(report, told)
            while child.poll() is None:
                lines.read()
                time.sleep(POLL_S)
            return lines.finish(child.returncode, log)


def check_interpreter(python: str, *packages: str) -> None:
    """Raises :class:`UsageError` if an interpreter lacks a package it needs."""
    probe = [python, "-c", NEEDED.format(names=packages)]
    try:
        done = subprocess.run(probe, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as problem:
        raise UsageError(f"--server-python {python} cannot be run: {problem}") from problem
    if missing := done.stdout.split():
        raise UsageError(
            f"--server-python {python} has no {', '.join(missing)}: install it there, or name "
            "the environment that has vLLM and pytest"
        )


def _command(python: str, target: str, folder: Path, report: Path) -> list[str]:
    command = [python, "-m", "pytest", target, "-c", str(CONTRACTS / "pytest.ini"), "--noconftest"]
    command += [
        "--rootdir",
        str(folder),
        "--basetemp",
        str(folder / "tmp"),
        "-p",
        "no:cacheprovider",
    ]
    command += ["-p", "conformance.contracts.reporter", "--contract-report", str(report)]
    return [*command, "--tb=short", "-p", "no:xdist", "-p", "no:timeout"]


def _environment(folder: Path, given: Mapping[str, str] | None) -> dict[str, str]:
    """Only the contracts are put on the other Python's path, not the suite's own packages."""
    library = folder / "lib" / "conformance"
    library.mkdir(parents=True)
    shutil.copy(PACKAGE / "__init__.py", library)
    (library / "contracts").symlink_to(CONTRACTS)
    path = [str(library.parent), os.getcwd(), os.environ.get("PYTHONPATH", "")]
    path += [(given or {}).get("PYTHONPATH", "")]
    return {
        **os.environ,
        **QUIET,
        **(given or {}),
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
    }


@contextmanager
def _started(
    command: list[str], folder: Path, env: Mapping[str, str] | None, output: object
) -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen(
        command,
        env=_environment(folder, env),
        stdout=output,  # type: ignore[call-overload]
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield child
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


class _Lines:
    """The report's lines, read while they are written."""

    def __init__(self, path: Path, told: Callable[[ClauseResult], None] | None) -> None:
        self._file = path.open()
        self._told = told
        self._running: ClauseResult | None = None
        self._planned: dict[tuple[str, str], ClauseResult] = {}
        self._results: dict[tuple[str, str], ClauseResult] = {}

    def read(self) -> None:
        """Take in what is there."""
        at = self._file.tell()
        while (line := self._file.readline()).endswith("\n"):
            given = json.loads(line)
            self._take(ClauseResult(given.pop("class"), **given))
            at = self._file.tell()
        self._file.seek(at)  # a line that is still being written is read next time

    def finish(self, code: int, log: Path) -> list[ClauseResult]:
        """All results. A process that ended too early leaves clauses without one."""
        self.read()
        self._file.close()
        how = f"the process ended with {f'signal {-code}' if code < 0 else f'exit code {code}'}"
        if self._running:
            why = f"hung or crashed: {how} in this clause"
            self._take(replace(self._running, verdict="fail", message=why))
        for key, clause in self._planned.items():
            if key not in self._results:
                self._take(replace(clause, verdict="error", message=f"never tried: {how}"))
        if not self._results:
            tail = log.read_text(errors="replace")[-2000:]
            raise EnvironmentProblem(f"no clause was tried, {how}:\n{tail}")
        return list(self._results.values())

    def _take(self, result: ClauseResult) -> None:
        key = (result.contract, result.clause)
        if result.verdict == "planned":
            self._planned[key] = result
            return
        if result.verdict == "started":
            self._running = result
            return
        self._running = None
        # A clause that failed and whose pair then cannot be shut down stays failed.
        if key not in self._results or self._results[key].verdict == "pass":
            self._results[key] = result
            if self._told:
                self._told(result)
