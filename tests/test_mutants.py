"""The list of mutants: each says what is wrong with it and which cells have to see that."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from conformance.errors import UsageError
from conformance.mutants import catalogue, real, switch
from conformance.mutants.fault import EVERYWHERE, Fault
from conformance.mutants.switch import Switch, turn
from conformance.mutants.trial import Wanted
from conformance.profile_file import load_profile
from conformance.serving.deployment import PAIR

# Kinds that a transfer can be wrong in; each has to be in the list.
KINDS = (
    *("another-requests-kv", "claim-and-load-nothing", "claim-one-less", "claim-one-more"),
    *("claim-whole-prompt", "crash-on-second", "drop-last-block", "drop-one-layer"),
    *("finish-early", "first-chunk-only", "flip-one-bit", "hang-at-load", "hash-first-block"),
    *("ignore-model", "ignore-salt", "leak-blocks", "load-zeros", "never-finish-sending"),
    *("params-once", "recompute-silently", "refuse-unclearly", "report-unsent-bytes"),
    *("shift-by-one-token", "slow", "stale-kv", "swallow-aborts", "swap-keys-and-values"),
    *("swap-two-blocks", "two-argument-constructor", "wrong-after-preemption"),
    *("wrong-beyond-length", "wrong-dtype", "wrong-on-prefix-hit", "wrong-under-concurrency"),
)


def test_every_kind_of_fault_is_there() -> None:
    assert catalogue.names() == sorted(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_a_fault_says_what_is_wrong_and_who_has_to_see_it(name: str) -> None:
    fault = catalogue.fault_named(name)
    assert catalogue.title(name).endswith(".")
    assert fault.red, "a fault that nobody has to see proves nothing"
    assert not set(fault.red) & set(fault.green)
    assert set(fault.over) <= set(EVERYWHERE)


@pytest.mark.parametrize("name", KINDS)
def test_a_fault_breaks_something(name: str) -> None:
    fault = catalogue.fault_named(name)
    own = set(vars(fault)) & {hook for hook in vars(Fault) if not hook.startswith("_")}
    assert fault.constructed_as or own - {"over", "red", "green", "ends_servers"}


@pytest.mark.parametrize("over", EVERYWHERE)
def test_every_cell_that_a_fault_names_exists(over: str) -> None:
    profile = load_profile(real.PROFILES / f"{over}.yaml")
    known = {cell.id for cell in real._cells(profile)}
    for name in catalogue.names():
        fault = catalogue.fault_named(name)
        if over in fault.over:
            assert {*fault.red, *fault.green} <= known, name


def test_a_fault_that_no_cell_sees_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue.fault_named("slow"), "red", ("no/such-cell",))
    with pytest.raises(UsageError, match="slow over nixl: none of the cells"):
        real.attempts(["slow"], ["nixl"], sweep=False)


def test_healthy_trials_come_first_and_those_that_end_servers_last() -> None:
    found = real.attempts(["crash-on-second", "load-zeros"], ["nixl"], sweep=False)
    order = list(dict.fromkeys(attempt.mutant for attempt in found))
    assert order == ["none", "load-zeros", "crash-on-second"]
    healthy = {a.cell.id for a in found if a.mutant == "none"}
    assert healthy == {a.cell.id for a in found if a.mutant != "none"}
    assert all(a.wanted is Wanted.GREEN for a in found if a.mutant == "none")


def test_what_stays_green_is_tried_before_what_goes_red() -> None:
    found = real.attempts(["load-zeros"], ["nixl"], sweep=False)
    wanted = [attempt.wanted for attempt in found if attempt.mutant == "load-zeros"]
    assert wanted == sorted(wanted, key=lambda w: w is Wanted.RED)


def test_faults_share_deployments() -> None:
    found = real.attempts(catalogue.names(), EVERYWHERE, sweep=True)
    keys = [attempt.key for attempt in found]
    changes = sum(before != after for before, after in pairwise(keys))
    assert changes == len(set(keys)) - 1, "a deployment is left for good once another one starts"


def test_a_sweep_tries_the_core_on_some_mutants() -> None:
    few = real.attempts(["load-zeros"], ["nixl"], sweep=False)
    all_of_them = real.attempts(["load-zeros"], ["nixl"], sweep=True)
    seen = [a for a in all_of_them if a.wanted is Wanted.SEEN]
    assert len(all_of_them) - len(few) == len(seen)
    assert all(a.mutant == "load-zeros" and a.cell.check.shape == PAIR for a in seen)
    assert {a.cell.level for a in seen} == {"core", "extended"}
    assert len(seen) > 140


@pytest.mark.parametrize(
    ("name", "over"), [("load-zeros", "example"), ("recompute-silently", "nixl")]
)
def test_other_sweeps_are_of_the_core(name: str, over: str) -> None:
    found = real.attempts([name], [over], sweep=True)
    assert {a.cell.level for a in found if a.wanted is Wanted.SEEN} == {"core"}


def test_a_fault_in_the_constructor_has_servers_of_its_own() -> None:
    (start,) = (
        a
        for a in real.attempts(["two-argument-constructor"], ["nixl"], sweep=False)
        if a.mutant != "none"
    )
    assert start.cell.profile.connector == "TakesTwoArguments"
    assert start.cell.profile.module_path == "conformance.mutants.constructors"
    assert start.cell.profile.name != "mutant-nixl"


def test_a_running_connector_takes_on_the_fault_that_is_named(tmp_path: Path) -> None:
    found = Switch(str(tmp_path))
    assert type(found.fault) is Fault, "nothing was named yet"
    turn(tmp_path, "load-zeros")
    zeros = found.fault
    assert type(zeros) is catalogue.fault_named("load-zeros")
    assert found.fault is zeros, "it keeps its memory as long as it is on"
    turn(tmp_path, "load-zeros")
    assert found.fault is not zeros, "it has none of the time before"
    turn(tmp_path, catalogue.NONE)
    assert type(found.fault) is Fault


def test_both_sides_of_a_process_share_a_fault(tmp_path: Path) -> None:
    turn(tmp_path, "slow")
    assert switch.switch_at(str(tmp_path)).fault is switch.switch_at(str(tmp_path)).fault
