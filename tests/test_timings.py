"""Timings: what was measured last time is expected next time, and a bad file costs only that."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_matrix_samples import cell as sample
from test_matrix_samples import one

from conformance import timings as module
from conformance.console import Console
from conformance.options import RunOptions
from conformance.recorder import planned
from conformance.registry import PlannedCell, plan
from conformance.report import ServerStart
from conformance.report_parts import AssumptionResult
from conformance.timings import Timings
from conformance.verdict import ExitCode

CELLS = plan(RunOptions(connectors=("nixl",), real_model="all"), "cpu")
FAST = next(cell for cell in CELLS if cell.check.model == "fast")
REAL = next(cell for cell in CELLS if cell.check.model == "real")
OPTIONS = RunOptions()


def start(deployment: str, startup_s: float | None) -> ServerStart:
    return ServerStart(
        deployment=deployment, role="decode", model="m", command=[], startup_s=startup_s
    )


def learned(file: Path, cell: PlannedCell, seconds: float) -> Timings:
    timings = Timings(file)
    timings.learn(planned(cell, OPTIONS).model_copy(update={"duration_s": seconds}))
    return timings


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "timings.json"


def test_before_anything_was_measured_there_are_guesses(file: Path) -> None:
    timings = Timings(file)
    assert timings.cell_s(FAST) == module.FIRST_CELL_S
    assert timings.cell_s(REAL) == module.FIRST_REAL_CELL_S
    assert timings.start_s(FAST.deployment) == module.FIRST_START_S


def test_a_measured_cell_is_remembered_in_the_next_run(file: Path) -> None:
    learned(file, FAST, 3.25).save()
    assert Timings(file).cell_s(FAST) == 3.25
    assert Timings(file).cell_s(REAL) == module.FIRST_REAL_CELL_S


def test_other_cells_and_other_deployments_keep_their_own(file: Path) -> None:
    timings = learned(file, FAST, 3.25)
    other = plan(RunOptions(connectors=("example",), checks=(FAST.check.id,)), "cpu")[0]
    assert other.id == FAST.id
    assert timings.cell_s(other) == module.FIRST_CELL_S


def test_starts_are_remembered_where_they_succeeded(file: Path) -> None:
    report = one(sample())
    report.servers = [start("a", 40.0), start("b", None)]
    timings = Timings(file)
    timings.learn_starts(report)
    timings.save()
    assert Timings(file).start_s("a") == 40
    assert Timings(file).start_s("b") == 0, "its cells had to wait for it, and have the time"


def test_a_deployment_that_its_cells_did_not_need_takes_no_time(file: Path) -> None:
    timings = learned(file, FAST, 0.0)
    timings.learn_starts(one(sample()))
    assert timings.run_s([FAST]) == 0


def test_starts_after_crashes_are_spread_over_the_cells(file: Path) -> None:
    report = one(sample())
    name = FAST.deployment
    report.servers = [start(name, 40.0), start(name, 40.0), start(name, 30.0), start(name, 20.0)]
    timings = learned(file, FAST, 2.0)
    timings.learn(planned(FAST, OPTIONS).model_copy(update={"check": "b", "duration_s": 1.0}))
    timings.learn_starts(report)
    assert timings.start_s(name) == 40
    assert timings.run_s([FAST]) == 40 + 2 + 50 / 2


def test_a_run_of_a_few_cells_does_not_say_how_often_all_crash(file: Path) -> None:
    report, name = one(sample()), FAST.deployment
    report.servers = [start(name, 40.0), start(name, 30.0)]
    whole = Timings(file)
    for check in "abc":
        whole.learn(planned(FAST, OPTIONS).model_copy(update={"check": check}))
    whole.learn_starts(report)
    whole.save()
    report.servers = [start(name, 41.0), start(name, 30.0), start(name, 30.0)]
    few = learned(file, FAST, 2.0)
    few.learn_starts(report)
    assert few.run_s([FAST]) == 41 + 2 + 30 / 3


@pytest.mark.parametrize("held", [True, False])
def test_a_run_that_ended_at_its_assumptions_tells_nothing_of_what_it_did_not_try(
    file: Path, monkeypatch: pytest.MonkeyPatch, held: bool
) -> None:
    monkeypatch.setenv("KV_CONFORMANCE_CACHE", str(file.parent))
    learned(file, FAST, 3.25).save()
    console = Console("", [FAST], OPTIONS)
    found = AssumptionResult(id="a", says="b", held=held, seen="c", relied_on=["d"], source="e")
    console.assumptions([found], "0.32.0")
    console.cell("nixl", planned(FAST, OPTIONS).model_copy(update={"duration_s": 0.0}))
    console.finish(one(sample()), "folder", ExitCode.CONFORMANT)
    assert Timings().cell_s(FAST) == (0.0 if held else 3.25)


def test_a_run_is_the_sum_of_its_starts_and_cells(file: Path) -> None:
    timings = learned(file, FAST, 2.0)
    same = [cell for cell in CELLS if cell.deployment == FAST.deployment]
    cells_s = sum(timings.cell_s(cell) for cell in same)
    assert timings.run_s(same) == pytest.approx(module.FIRST_START_S + cells_s)
    both = timings.run_s([FAST, REAL])
    assert both == pytest.approx(2 * module.FIRST_START_S + 2.0 + module.FIRST_REAL_CELL_S)
    assert timings.run_s([]) == 0


@pytest.mark.parametrize("content", [b"", b'{"a": 1', b"\xff\xfe"])
def test_an_unreadable_file_is_as_good_as_none(file: Path, content: bytes) -> None:
    file.parent.mkdir()
    file.write_bytes(content)
    assert Timings(file).cell_s(FAST) == module.FIRST_CELL_S
    learned(file, FAST, 3.25).save()
    assert Timings(file).cell_s(FAST) == 3.25


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("in the way")
    learned(tmp_path / "cache" / "timings.json", FAST, 1.0).save()
    assert (tmp_path / "cache").read_text() == "in the way"


def test_timings_lie_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KV_CONFORMANCE_CACHE", str(tmp_path / "mine"))
    Timings().save()
    assert (tmp_path / "mine" / "timings.json").exists()
