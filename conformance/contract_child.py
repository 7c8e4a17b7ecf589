"""Runs contract classes with pytest in another Python and reads what became of each clause."""

from __future__ import annotations

import math
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import conformance
from conformance.contract_results import ClauseResult, Lines
from conformance.errors import UsageError

PACKAGE = Path(conformance.__file__).parent
CONTRACTS = PACKAGE / "contracts"
POLL_S = 0.2
# Every clause has its verdict: a library's threads that keep the process from ending add nothing.
EXIT_S = 10.0
NEEDED = "import importlib.util as u; print(*(n for n in {names!r} if not u.find_spec(n)))"
# Enough to be one's own engine on a shared machine: no network, one thread, this host.
QUIET = {
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_HOST_IP": "127.0.0.1",
    "PYTHONHASHSEED": "0",
    # Plugins of the engine's environment have no part in a contract, and cost seconds.
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
}


def run_contracts(
    python: str,
    target: str,
    told: Callable[[ClauseResult], None] | None = None,
    env: Mapping[str, str] | None = None,
    log: Path | None = None,
    clause_limit_s: float = 120.0,
) -> list[ClauseResult]:
    """Run the contract classes in ``target`` (a file, as pytest names it) under ``python``.

    ``told`` hears of each clause as it ends. Everything pytest and the engine print goes to
    ``log``. A clause that takes longer than its limit or kills the process is a ``fail``, and
    those after it an ``error``.
    """
    with TemporaryDirectory(prefix="kv-contract-") as name:
        folder = Path(name)
        log = log or folder / "log"
        report = folder / "report"
        report.touch()
        command = _command(python, target, folder, report)
        command += ["--contract-limit", str(clause_limit_s)]
        with log.open("wb") as output, _started(command, folder, env, output) as child:
            lines = Lines(report, told)
            end = math.inf
            while child.poll() is None and time.monotonic() < end:
                lines.read()
                end = min(end, time.monotonic() + EXIT_S) if lines.complete() else end
                time.sleep(POLL_S)
            return lines.finish(child.poll(), log)


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
    return [*command, "--tb=short"]


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
