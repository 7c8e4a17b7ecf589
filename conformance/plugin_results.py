"""What becomes of each result: judged where it was tried, recorded where all are seen.

The process that tries the checks (pytest itself or an xdist worker) attaches a finished cell to
each test report; the process that sees every report (pytest itself or xdist's controller)
records it.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest

from conformance.assumptions.trial import broken
from conformance.assumptions.trial import words as broken_words
from conformance.case import Case
from conformance.console import Console
from conformance.controls import controlled
from conformance.errors import ReportError
from conformance.expectations_outcome import expected
from conformance.expectations_outcome import words as expectation_words
from conformance.expectations_ruling import Ruling
from conformance.recorder import Recorder
from conformance.registry import PlannedCell
from conformance.registry_gate import gated, words
from conformance.report import Cell, ServerStart, Timing
from conformance.report_parts import AssumptionResult
from conformance.runtime import Runtime
from conformance.trying import finished
from conformance.verdict import ExitCode, Verdict, exit_code

_CAUGHT = {Verdict.FAIL, Verdict.DEGRADED}
_SKIPPED = {Verdict.NOT_RUN, Verdict.UNSUPPORTED}


def attach(
    report: pytest.TestReport,
    cell: PlannedCell,
    made: Case | None,
    problem: BaseException | None,
    runtime: Runtime,
    ruling: Ruling,
) -> None:
    """Judge a check that ended, and attach the cell to pytest's report."""
    result = finished(cell, made, problem, report.duration, runtime.options)
    if made and result.verdict is not Verdict.PASS and not result.log_excerpt:
        result.log_excerpt = runtime.log_excerpt()
    runtime.gate.learn(cell, result.verdict)
    if not cell.profile.control:
        ruling.settle(cell.profile.name, result)
    _set_outcome(report, result, control=cell.profile.control)
    extra: Any = report
    extra.kv_connector = cell.profile.name
    extra.kv_cell = result.model_dump(mode="json")
    extra.kv_servers = [start.model_dump(mode="json") for start in runtime.take_starts()]
    extra.kv_assumptions = [found.model_dump() for found in runtime.assumptions.take()]
    extra.kv_timing = runtime.clock.timing().model_dump()


def _set_outcome(report: pytest.TestReport, cell: Cell, *, control: bool) -> None:
    """Pytest's three outcomes, so that JUnit and exit codes agree with the verdict.

    A control is there to be found out, so the check on it passes by going red.
    """
    if cell.verdict in (_CAUGHT if control else {Verdict.PASS}):
        report.outcome = "passed"
        report.longrepr = None
    elif cell.verdict in _SKIPPED:
        report.outcome = "skipped"
        report.longrepr = (report.nodeid, 0, f"{cell.verdict}: {cell.message}")
    elif cell.verdict is Verdict.XFAIL:
        report.outcome = "skipped"
        report.longrepr = f"{cell.verdict}: {cell.message}"
        report.wasxfail = cell.expectation.words if cell.expectation else cell.message
    else:
        report.outcome = "failed"
        report.longrepr = f"{cell.verdict}: {cell.message}\nreplay: {cell.replay}"


class Results:
    """Records results; registered where they are all seen, which is not in xdist's workers."""

    def __init__(self, recorder: Recorder, console: Console) -> None:
        self.recorder = recorder
        self.console = console
        self.unwritable = ""
        self._session: pytest.Session | None = None

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Keep the session, to be able to stop it."""
        self._session = session

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Put a cell that came with a test report into the run's report."""
        extra: Any = report
        if not hasattr(report, "kv_cell"):
            return
        for start in extra.kv_servers:
            self.recorder.server(ServerStart.model_validate(start))
        worker = getattr(report, "node", None)
        if worker is not None:
            self._worker_timing(worker, extra.kv_timing)
        self._assumptions(extra.kv_assumptions)
        finished = Cell.model_validate(extra.kv_cell)
        self.console.cell(extra.kv_connector, finished)
        try:
            self.recorder.cell(extra.kv_connector, finished)
        except ReportError as problem:
            # Results that cannot be kept are not worth the hours they take.
            self.unwritable = str(problem)
            if self._session:
                self._session.shouldstop = str(problem)

    def _assumptions(self, given: list[dict[str, Any]]) -> None:
        """Every worker tries them: kept are the first, or those of which one does not hold."""
        results = [AssumptionResult.model_validate(each) for each in given]
        known = self.recorder.report.assumptions
        if results and (not known or (broken(results) and not broken(known))):
            self.recorder.report.assumptions = results
            self.console.assumptions(results, self._version)

    @property
    def _version(self) -> str:
        engine = self.recorder.report.engine
        return engine.version if engine else "of an unknown version"

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """The last word of an xdist worker: its timing with the stop of its servers."""
        output = getattr(node, "workeroutput", {})
        if "kv_timing" in output:
            self._worker_timing(node, output["kv_timing"])

    def _worker_timing(self, node: Any, timing: dict[str, Any]) -> None:
        self.recorder.worker_timing(node.gateway.id, Timing.model_validate(timing))

    def finish(self, session: pytest.Session, runtime: Runtime) -> None:
        """Write the last report and choose the exit code, once the servers are stopped."""
        interrupted = session.exitstatus == pytest.ExitCode.INTERRUPTED
        for start in runtime.take_starts():
            self.recorder.server(start)
        report = self.recorder.report
        code = ExitCode.INTERRUPTED if interrupted else exit_code(report.verdicts())
        code = expected(code, report.expectations)
        code = gated(controlled(code, report.controls), report.registry)
        report.problems += [*words(report.registry), *expectation_words(report.expectations)]
        if broken(report.assumptions):
            code = ExitCode.HARNESS
            report.problems.append(broken_words(report.assumptions, self._version))
        try:
            self.recorder.finish("interrupted" if interrupted else "finished")
        except ReportError as problem:
            self.unwritable = str(problem)
        if self.unwritable or session.exitstatus == pytest.ExitCode.INTERNAL_ERROR:
            code = ExitCode.HARNESS
        if self.unwritable:
            print(f"kv-conformance: {self.unwritable}", file=sys.stderr)
        session.exitstatus = code
        self.console.finish(self.recorder.report, self.recorder.folder, code)
