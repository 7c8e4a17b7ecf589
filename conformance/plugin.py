"""The pytest plugin: which cells are tried, on which pair, in which order.

``pytest conformance --connector nixl`` and ``kv-conformance run`` are the same run.
``plugin_options.py`` has the options, ``plugin_results.py`` what becomes of each result.
"""

from __future__ import annotations

from collections.abc import Generator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from conformance.attachment import ONE_PROCESS
from conformance.case import Case
from conformance.console import Console
from conformance.errors import SuiteError, UsageError
from conformance.expectations_outcome import words
from conformance.expectations_ruling import Ruling
from conformance.expectations_scope import ruling_of
from conformance.plugin_options import add_options, options_of
from conformance.plugin_results import Results, attach
from conformance.recorder import Recorder
from conformance.registry import CHECKS_FOLDER, Check, PlannedCell, plan
from conformance.runtime import Runtime
from conformance.self_description import describe

RUNTIME = pytest.StashKey[Runtime]()
RESULTS = pytest.StashKey[Results]()
PLAN = pytest.StashKey[list[PlannedCell]]()
CASE = pytest.StashKey[Case]()
RULING = pytest.StashKey[Ruling]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of a run."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Take part only where checks are among what pytest was asked to run."""
    if not _runs_checks(config) or config.option.collectonly:
        return
    try:
        options = options_of(config)
        if options.attachment and config.getoption("numprocesses", None):
            raise UsageError(ONE_PROCESS)
        runtime = Runtime(options)
        options = runtime.options
        cells = plan(options, runtime.engine.device)
        ruling = ruling_of(options, cells, runtime.engines, date.today())
    except SuiteError as problem:
        raise pytest.UsageError(str(problem)) from problem
    config.stash[RUNTIME], config.stash[PLAN], config.stash[RULING] = runtime, cells, ruling
    if _is_worker(config):
        return
    recorder = Recorder(options, cells, runtime.engine, runtime.gpus, runtime.clock, ruling.result)
    console = Console(config.getoption("--kv-console"), cells, options)
    for line in words(ruling.result):
        console.note(line)
    config.stash[RESULTS] = Results(recorder, console)
    config.pluginmanager.register(config.stash[RESULTS], "kv-conformance-results")
    runtime.on_start = console.server
    if cells and not options.attachment:
        profiles = (cell.profile for cell in cells)
        describe(recorder.report, profiles, runtime.engines, options, console.note)


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
                marks=_marks(metafunc.config, cell),
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


def _marks(config: pytest.Config, cell: PlannedCell) -> list[pytest.MarkDecorator]:
    """Those of a deployment's cells go to one worker; the suite has limits of its own, and a
    configuration's timeout for ordinary tests would end servers that are starting."""
    marks = [pytest.mark.xdist_group(cell.deployment)]
    if config.pluginmanager.hasplugin("timeout"):
        marks.append(pytest.mark.timeout(0))
    return marks


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
    made = Case(cell, runtime.pairs(cell), start=lambda: runtime.try_start(cell))
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
    if not isinstance(problem, KeyboardInterrupt):
        made = item.stash.get(CASE, None)
        stash = item.config.stash
        attach(report, cell, made, problem, stash[RUNTIME], stash[RULING])
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    """Whatever others do at the end, such as writing JUnit to a full disk: finish our part."""
    results = session.config.stash.get(RESULTS, None)
    try:
        yield
    except OSError as problem:
        if results is None:
            raise
        results.unwritable = f"cannot write {problem.filename}: {problem.strerror}"
    finally:
        _finish(session, results)


def _finish(session: pytest.Session, results: Results | None) -> None:
    """Stop the servers; then the report and the exit code, where all results are."""
    runtime = session.config.stash.get(RUNTIME, None)
    if runtime is None:
        return
    runtime.close()
    if results:
        results.finish(session, runtime)
    elif _is_worker(session.config):
        output: dict[str, Any] = session.config.workeroutput  # type: ignore[attr-defined]
        output["kv_timing"] = runtime.clock.timing().model_dump()
