"""Tries the suite on surroundings that are broken on purpose, all of them scripted: no vLLM.

``harness_faults.py`` has the faults, ``harness_runs.py`` which of them share a run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from conformance.errors import ReportError, SuiteError, UsageError
from conformance.mutants.harness_children import Child, each_ended
from conformance.mutants.harness_fault import HarnessFault
from conformance.mutants.harness_faults import FAULTS
from conformance.mutants.harness_runs import CANARY, HarnessRun, runs
from conformance.mutants.trial import Trial, Wanted
from conformance.report import Cell, Report, load
from conformance.scripted.suite import asking
from conformance.verdict import Verdict

__all__ = ["FAULTS", "HarnessFault", "run_harness_faults"]

NONE = "none"
LAST_WORDS = 1500


def run_harness_faults(
    names: Collection[str], say: Callable[[Trial], None], *, python: str | None = None
) -> list[Trial]:
    """Try these faults on their checks, and the same checks without any.

    ``say`` hears of each trial as soon as its run has ended. ``python``: what the scripted servers
    run on, if not this interpreter. Nothing is left behind, however it ends. Raises
    :class:`UsageError` for a name that no fault has, and :class:`SuiteError` for a run that
    proves nothing.
    """
    wanted = runs(_chosen(names))
    trials: list[Trial] = []
    with tempfile.TemporaryDirectory(prefix="kvc-selftest-") as folder:
        children = [
            Child(Path(folder) / f"run-{number}", _words(run), _fault(run), python or "")
            for number, run in enumerate(wanted)
        ]
        for number, child in each_ended(children):
            for trial in _trials(wanted[number], _report(child)):
                trials.append(trial)
                say(trial)
    return trials


def _chosen(names: Collection[str]) -> list[HarnessFault]:
    known = [fault.name for fault in FAULTS]
    for name in names:
        if name not in known:
            raise UsageError(f"fault {name!r} is unknown. Known: {', '.join(known)}")
    return [fault for fault in FAULTS if fault.name in names]


def _words(run: HarnessRun) -> list[str]:
    """What is asked of the command line; every cell is tried, whatever another came to."""
    connectors = [part for name in run.connectors for part in ("--connector", name)]
    return ["--keep-going", *run.options, *connectors, *asking(run.tried)]


def _fault(run: HarnessRun) -> str:
    """With a semicolon even where there is one part: names of checks have commas."""
    return ";".join([*(fault.tied for fault in run.faults), ""])


def _report(child: Child) -> Report:
    try:
        found = load(child.report)
    except ReportError as problem:
        raise SuiteError(
            f"a run of the selftest left no report: {child.said(LAST_WORDS)}"
        ) from problem
    if found.state != "finished" or child.crashed:
        raise SuiteError(f"a run of the selftest did not end by itself: {child.said(LAST_WORDS)}")
    return found


def _trials(run: HarnessRun, report: Report) -> Iterator[Trial]:
    for connector in run.connectors:
        canary = _cell(report, connector, CANARY)
        if canary.verdict is not Verdict.PASS:
            raise SuiteError(
                f"{CANARY}, that no fault concerns, is {canary.verdict} in a run of the selftest "
                f"({canary.message}), so what is red there proves nothing"
            )
    for fault in run.faults:
        for wanted, checks in ((Wanted.RED, fault.red), (Wanted.GREEN, fault.green)):
            for check in checks:
                yield _trial(fault.name, _cell(report, fault.connector, check), wanted)
    for connector in run.connectors:
        for check in run.checks:
            yield _trial(NONE, _cell(report, connector, check), Wanted.GREEN)


def _trial(mutant: str, cell: Cell, wanted: Wanted) -> Trial:
    return Trial(
        mutant=mutant,
        over="scripted",
        check=cell.check,
        wanted=wanted,
        verdict=cell.verdict,
        message=cell.message,
        duration_s=cell.duration_s,
    )


def _cell(report: Report, connector: str, check: str) -> Cell:
    column = report.connector(connector)
    found = column.cell(check) if column else None
    if found is None:
        raise SuiteError(f"a run of the selftest has no cell {connector}/{check}")
    return found
