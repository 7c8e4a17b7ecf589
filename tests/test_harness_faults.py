"""Faults of the surroundings: which there are, which share a run, and what becomes of cells."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from conformance.errors import SuiteError, UsageError
from conformance.mutants import harness
from conformance.mutants.harness import FAULTS, run_harness_faults
from conformance.mutants.harness_fault import HarnessFault
from conformance.mutants.harness_runs import CANARY, HarnessRun, runs
from conformance.mutants.trial import Wanted
from conformance.profile_file import builtin_profiles
from conformance.registry import all_checks
from conformance.scripted import faults
from conformance.verdict import Verdict

NAMES = [fault.name for fault in FAULTS]


def known_cells(connector: str) -> set[str]:
    profile = builtin_profiles()[connector]
    return {cell for found in all_checks() for cell in found.cell_ids(profile)}


def test_every_fault_has_a_name_and_a_sentence_of_its_own() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert all(fault.title.endswith(".") for fault in FAULTS)
    assert harness.NONE not in NAMES


@pytest.mark.parametrize("fault", FAULTS, ids=NAMES)
def test_a_fault_is_known_and_names_cells_that_there_are(fault: HarnessFault) -> None:
    assert fault.red
    assert set(fault.checks) <= known_cells(fault.connector)
    assert len(set(fault.checks)) == len(fault.checks)
    assert CANARY not in fault.checks
    in_effect = [faults.parse(fault.tied + ";", role).listed for role in faults.ROLES]
    assert any(in_effect)
    bound = {check for listed in in_effect for _, _, check in listed}
    assert bound <= {*fault.checks, *([""] if fault.alone else [])}


def test_no_fault_can_hide_another() -> None:
    for run in runs(FAULTS):
        checks = Counter(check for fault in run.faults for check in fault.checks)
        assert not [check for check, times in checks.items() if times > 1]
        assert len({fault.options for fault in run.faults}) <= 1
        assert len(run.faults) == 1 or not any(fault.alone for fault in run.faults)
        assert CANARY in run.tried
    assert sorted(f.name for run in runs(FAULTS) for f in run.faults) == sorted(NAMES)


def test_the_last_run_has_every_check_and_no_fault() -> None:
    last = runs(FAULTS)[-1]
    assert last.faults == []
    assert set(last.checks) == {check for fault in FAULTS for check in fault.checks}
    assert runs([]) == []


def test_a_name_that_no_fault_has_is_refused() -> None:
    with pytest.raises(UsageError, match=r"fault 'metrics-frosen' is unknown\. Known: metrics-"):
        run_harness_faults(["metrics-frosen"], print)


def report_of(**verdicts: Verdict) -> Any:
    """Cells of NIXL with these verdicts; the canary's is ``canary``."""
    cells = {
        CANARY if name == "canary" else f"transfer/{name}": SimpleNamespace(
            check=CANARY if name == "canary" else f"transfer/{name}",
            verdict=verdict,
            message="so it is",
            duration_s=0.1,
        )
        for name, verdict in verdicts.items()
    }
    return SimpleNamespace(connector=lambda _: SimpleNamespace(cell=cells.get))


BROKEN = HarnessFault("broken", "It is.", "recompute", ("transfer/chat",), ("transfer/completion",))


def test_a_cell_becomes_a_trial_and_what_was_wanted_of_it() -> None:
    found = report_of(canary=Verdict.PASS, chat=Verdict.PASS, completion=Verdict.FAIL)
    red, green = harness._trials(HarnessRun([BROKEN]), found)
    assert (red.mutant, red.check, red.wanted) == ("broken", "transfer/chat", Wanted.RED)
    assert red.survived
    assert green.strayed
    (healthy,) = harness._trials(HarnessRun(checks=["transfer/completion"]), found)
    assert (healthy.mutant, healthy.wanted, healthy.strayed) == (harness.NONE, Wanted.GREEN, True)


def test_a_run_that_is_red_throughout_kills_nothing() -> None:
    found = report_of(canary=Verdict.ERROR, chat=Verdict.ERROR, completion=Verdict.PASS)
    with pytest.raises(SuiteError, match=f"{CANARY}, that no fault concerns, is error"):
        list(harness._trials(HarnessRun([BROKEN]), found))


def test_a_cell_that_was_not_tried_is_an_error() -> None:
    with pytest.raises(SuiteError, match="no cell nixl/transfer/chat"):
        list(harness._trials(HarnessRun([BROKEN]), report_of(canary=Verdict.PASS)))
