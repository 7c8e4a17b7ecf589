"""The pytest plugin: options, the ``case`` fixture, and what becomes of each result.

``pytest conformance --connector nixl`` and ``kv-conformance run`` are the same run. The process
that tries the checks (pytest itself or an xdist worker) attaches a finished cell to each test
report; the process that sees every report (pytest itself or xdist's controller) records it.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from conformance.case import Case
from conformance.console import Console
from conformance.errors import ReportError, SuiteError
from conformance.judge import Judgement, judge
from conformance.options import RunOptions
from conformance.recorder import Recorder, planned
from conformance.registry import CHECKS_FOLDER, Check, PlannedCell, plan
from conformance.report import Cell, ServerStart, Timing
from conformance.runtime import Runtime
from conformance.serving.ports import DEFAULT_RANGE
from conformance.verdict import ExitCode, Verdict, exit_code

OPTIONS = pytest.StashKey[RunOptions]()
RUNTIME = pytest.StashKey[Runtime]()
RECORDER = pytest.StashKey[Recorder]()
CONSOLE = pytest.StashKey[Console]()
UNWRITABLE = pytest.StashKey[str]()
PLAN = pytest.StashKey[list[PlannedCell]]()
CASE = pytest.StashKey[Case]()

_SKIPPED = {Verdict.NOT_RUN, Verdict.UNSUPPORTED}
_PASSED = {Verdict.PASS}


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of a run, the same words as on the command line."""
    group = parser.getgroup("kv-conformance")
    add = group.addoption
    add("--connector", action="append", default=[], help="connector to try (repeatable)")
    add("--feature", action="append", default=[], help="only checks of this feature (repeatable)")
    add("--check", action="append", default=[], help="only this check id or pattern (repeatable)")
    add("--profile", action="append", default=[], help="YAML profile of an own connector")
    add("--model", default=None, help="model recipe, Hugging Face id or folder")
    add("--real-model", default="auto", choices=("auto", "all", "none"))
    add("--seed", type=int, default=0, help="prompts depend on it alone (default 0)")
    add("--report", default="reports/runs/latest", help="folder for report.json and logs")
    add("--server-python", default=None, help="interpreter whose environment has vLLM")
    add("--port-range", default=DEFAULT_RANGE, help=f"ports to lease (default {DEFAULT_RANGE})")
    add("--start-timeout", type=float, default=420.0, help="seconds for servers to be ready")
    add("--kv-console", default="", help="own progress output: 'lines' or 'quiet'")


def options_of(config: pytest.Config) -> RunOptions:
    """The run's options. Raises :class:`UsageError` for a name that does not exist."""
    get = config.getoption
    python = get("--server-python")
    return RunOptions(
        connectors=get("--connector"),
        features=get("--feature"),
        checks=get("--check"),
        profiles=get("--profile"),
        model=get("--model"),
        real_model=get("--real-model"),
        seed=get("--seed"),
        report=Path(get("--report")),
        port_range=get("--port-range"),
        start_timeout_s=get("--start-timeout"),
        **({"server_python": python} if python else {}),
    ).validated()


def pytest_configure(config: pytest.Config) -> None:
    """Take part only where checks are among what pytest was asked to run."""
    if not _runs_checks(config) or config.option.collectonly:
        return
    try:
        options = options_of(config)
        runtime = Runtime(options)
        cells = plan(options, runtime.engine.device)
    except SuiteError as problem:
        raise pytest.UsageError(str(problem)) from problem
    config.stash[OPTIONS], config.stash[RUNTIME], config.stash[PLAN] = options, runtime, cells
    if _is_worker(config):
        return
    recorder = Recorder(options, cells, runtime.engine, runtime.gpus, runtime.clock)
    config.stash[RECORDER] = recorder
    config.stash[CONSOLE] = Console(config.getoption("--kv-console"), cells, options)
    config.pluginmanager.register(_Results(config), "kv-conformance-results")
    runtime.on_start = config.stash[CONSOLE].server


def _runs_checks(config: pytest.Config) -> bool:
    paths = [Path(str(argument).split("::")[0]).resolve() for argument in config.args]
    package = CHECKS_FOLDER.parent
    return any(path == package or CHECKS_FOLDER in (path, *path.parents) for path in paths)


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test per planned cell of a check."""
    found: Check | None = getattr(metafunc.function, "kv_check", None)
    if found is None:
        return
    cells: list[PlannedCell] = metafunc.config.stash.get(PLAN, [])
    mine = [cell for cell in cells if cell.check.id == found.id]
    metafunc.parametrize(
        "case",
        [
            pytest.param(
                cell,
                id="-".join(filter(None, (cell.profile.name, cell.case))),
                marks=pytest.mark.xdist_group(cell.deployment),
            )
            for cell in mine
        ],
        indirect=True,
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In the order of the plan: a deployment is started once and serves all its checks."""
    cells: list[PlannedCell] = config.stash.get(PLAN, [])
    order = {id(cell): number for number, cell in enumerate(cells)}
    # A check with no planned cell still makes one item, with an empty parameter set.
    unplanned = [item for item in items if _is_check(item) and not _cell_of(item)]
    config.hook.pytest_deselected(items=unplanned)
    items[:] = [item for item in items if item not in unplanned]
    ours = [item for item in items if _cell_of(item)]
    ours.sort(key=lambda item: order.get(id(_cell_of(item)), 0))
    spots = iter(ours)
    items[:] = [next(spots) if _cell_of(item) else item for item in items]


def _is_check(item: pytest.Item) -> bool:
    return hasattr(getattr(item, "function", None), "kv_check")


def _cell_of(item: pytest.Item) -> PlannedCell | None:
    callspec = getattr(item, "callspec", None)
    found = callspec.params.get("case") if callspec else None
    return found if isinstance(found, PlannedCell) else None


@pytest.fixture
def case(request: pytest.FixtureRequest) -> Case:
    """The cell under trial, with its pair running."""
    cell: PlannedCell = request.param
    runtime = request.config.stash[RUNTIME]
    made = Case(cell, runtime.pairs(cell))
    request.node.stash[CASE] = made
    return made


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Judge a check that ended, and attach the cell to pytest's report."""
    report = yield
    cell = _cell_of(item)
    failed_setup = call.when == "setup" and call.excinfo is not None
    if cell is None or not (call.when == "call" or failed_setup):
        return report
    problem = call.excinfo.value if call.excinfo else None
    if isinstance(problem, KeyboardInterrupt):
        return report
    runtime = item.config.stash[RUNTIME]
    made = item.stash.get(CASE, None)
    finished = _finished(cell, made, problem, call.duration, item.config.stash[OPTIONS])
    if made and finished.verdict is not Verdict.PASS and not finished.log_excerpt:
        finished.log_excerpt = runtime.log_excerpt()
    runtime.gate.learn(cell, finished.verdict)
    _set_outcome(report, finished, str(item.path))
    extra: Any = report
    extra.kv_connector = cell.profile.name
    extra.kv_cell = finished.model_dump(mode="json")
    extra.kv_servers = [start.model_dump(mode="json") for start in runtime.take_starts()]
    extra.kv_timing = runtime.clock.timing().model_dump()
    return report


def _finished(
    cell: PlannedCell,
    made: Case | None,
    problem: BaseException | None,
    duration_s: float,
    options: RunOptions,
) -> Cell:
    result = planned(cell, options)
    if made:
        result.evidence = made.evidence
    found: Judgement = judge(problem, result.evidence)
    result.verdict, result.message, result.log_excerpt = (
        found.verdict,
        found.message,
        found.excerpt,
    )
    result.duration_s = round(duration_s, 2)
    return result


def _set_outcome(report: pytest.TestReport, cell: Cell, path: str) -> None:
    """Pytest's three outcomes, so that JUnit and exit codes agree with the verdict."""
    if cell.verdict in _PASSED:
        report.outcome = "passed"
    elif cell.verdict in _SKIPPED:
        report.outcome = "skipped"
        report.longrepr = (path, 0, f"{cell.verdict}: {cell.message}")
    else:
        report.outcome = "failed"
        report.longrepr = f"{cell.verdict}: {cell.message}\nreplay: {cell.replay}"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    """Whatever others do at the end, such as writing JUnit to a full disk: finish our part."""
    try:
        yield
    except OSError as problem:
        session.config.stash[UNWRITABLE] = f"cannot write {problem.filename}: {problem.strerror}"
    finally:
        _finish(session)


def _finish(session: pytest.Session) -> None:
    """Stop the servers, write the last report, choose the exit code."""
    config = session.config
    runtime = config.stash.get(RUNTIME, None)
    if runtime is None:
        return
    runtime.close()
    if _is_worker(config):
        output: dict[str, Any] = config.workeroutput  # type: ignore[attr-defined]
        output["kv_timing"] = runtime.clock.timing().model_dump()
        return
    recorder, console = config.stash[RECORDER], config.stash[CONSOLE]
    interrupted = session.exitstatus == pytest.ExitCode.INTERRUPTED
    for start in runtime.take_starts():
        recorder.server(start)
    code = ExitCode.INTERRUPTED if interrupted else exit_code(recorder.report.verdicts())
    try:
        recorder.finish("interrupted" if interrupted else "finished")
    except ReportError as problem:
        config.stash[UNWRITABLE] = str(problem)
    unwritable = config.stash.get(UNWRITABLE, "")
    if unwritable or session.exitstatus == pytest.ExitCode.INTERNAL_ERROR:
        code = ExitCode.HARNESS
    if unwritable:
        print(f"kv-conformance: {unwritable}", file=sys.stderr)
    session.exitstatus = code
    console.finish(recorder.report, recorder.folder, code)


class _Results:
    """Records results; registered where they are all seen, which is not in xdist's workers."""

    def __init__(self, config: pytest.Config) -> None:
        self._recorder = config.stash[RECORDER]
        self._console = config.stash[CONSOLE]
        self._config = config
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
            self._recorder.server(ServerStart.model_validate(start))
        worker = getattr(report, "node", None)
        if worker is not None:
            timing = Timing.model_validate(extra.kv_timing)
            self._recorder.worker_timing(worker.gateway.id, timing)
        finished = Cell.model_validate(extra.kv_cell)
        self._console.cell(extra.kv_connector, finished)
        try:
            self._recorder.cell(extra.kv_connector, finished)
        except ReportError as problem:
            # Results that cannot be kept are not worth the hours they take.
            self._config.stash[UNWRITABLE] = str(problem)
            if self._session:
                self._session.shouldstop = str(problem)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """The last word of an xdist worker: its timing with the stop of its servers."""
        output = getattr(node, "workeroutput", {})
        if "kv_timing" in output:
            timing = Timing.model_validate(output["kv_timing"])
            self._recorder.worker_timing(node.gateway.id, timing)
