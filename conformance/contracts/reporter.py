"""A pytest plugin that writes one JSON line for each clause, as it starts and as it ends.

Lines are written at once, so that a run that hangs or crashes still names its clause.
"""

from __future__ import annotations

import ctypes
import faulthandler
import inspect
import json
import signal
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from conformance.contracts.clause import DECLARED
from conformance.contracts.stacks import stacks_of

PR_SET_PDEATHSIG = 1  # linux/prctl.h
FIELDS = ("contract", "clause", "requirement", "verdict", "message")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where the lines go, and how long a clause may take."""
    parser.addoption("--contract-report", type=Path, help="file for one JSON line a clause")
    parser.addoption("--contract-limit", type=float, default=120.0, help="seconds for one clause")


def pytest_configure(config: pytest.Config) -> None:
    """Start writing, if asked to."""
    path = config.getoption("--contract-report")
    if path:
        _end_with_parent()
        config.pluginmanager.register(Reporter(path, config.getoption("--contract-limit")))


def _end_with_parent() -> None:
    """A command that is killed leaves no engine code running (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Reporter:
    """Writes the lines."""

    def __init__(self, path: Path, limit_s: float) -> None:
        self.file = path.open("a")
        # Not standard error, which pytest keeps to itself while a clause runs.
        self.stacks = stacks_of(path).open("w")
        self.limit_s = limit_s

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """All clauses are named first, so that those a crash leaves out are known."""
        for item in session.items:
            self._write("planned", item, "")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """A clause starts. One that hangs ends the process: nothing else can stop a thread."""
        self._write("started", item, "")
        faulthandler.dump_traceback_later(self.limit_s, exit=True, file=self.stacks)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """A clause ends, or what comes before or after it does not work."""
        report: pytest.TestReport = yield
        if report.when == "call" or not report.passed:
            self._write(_verdict(report), item, _message(report).removeprefix(DECLARED))
        return report

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A contract that cannot even be imported has no clauses."""
        if report.failed:
            text = str(report.longrepr).strip().splitlines()[-1].removeprefix("E ").strip()
            self._line("", "", "", "uncollected", text)

    def _write(self, verdict: str, item: pytest.Item, message: str) -> None:
        contract = getattr(getattr(item, "cls", None), "__name__", "")
        requirement = " ".join((inspect.getdoc(getattr(item, "function", None)) or "").split())
        self._line(contract, item.name.removeprefix("test_"), requirement, verdict, message)

    def _line(self, *values: str) -> None:
        self.file.write(json.dumps(dict(zip(FIELDS, values, strict=True))) + "\n")
        self.file.flush()


def _verdict(report: pytest.TestReport) -> str:
    if hasattr(report, "wasxfail"):
        return "xfail" if report.skipped else "xpass"
    if report.skipped:
        return "unsupported" if _message(report).startswith(DECLARED) else "not_run"
    if report.passed:
        return "pass"
    return "fail" if report.when == "call" else "error"


def _message(report: pytest.TestReport) -> str:
    if report.passed:
        return ""
    if report.skipped and isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash else str(report.longrepr)
    return " ".join(str(text).removeprefix("AssertionError: ").split("\nassert ")[0].split())
