"""Surroundings broken on purpose: each fault is seen by its checks, and by no other."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conformance.errors import SuiteError
from conformance.mutants import harness, harness_children
from conformance.mutants.harness import FAULTS, run_harness_faults
from conformance.mutants.harness_children import Child, each_ended
from conformance.mutants.trial import Trial
from conformance.profile_file import builtin_profiles
from conformance.registry import all_checks
from conformance.scripted.faults import tied
from conformance.scripted.suite import Suite, asking, until
from conformance.verdict import Verdict

pytestmark = pytest.mark.timeout(500)

UNTIL_NOTHING_IS_LEFT_S = 15.0
NAMES = [fault.name for fault in FAULTS]
NIXL = builtin_profiles()["nixl"]
UNSETTLED = "counters did not settle in 10 s"
NO_IDS = "the reference server was asked for token ids, and choice 0 of its answer has none"
# What a cell says of a fault, so that no other trouble can pass for it.
TOLD = {
    "metrics-frozen": UNSETTLED,
    "requests-never-counted": UNSETTLED,
    "requests-counted-late": "decode recomputed the rest",
    "token-sources-frozen": "sources sum to 0",
    "connector-metrics-frozen": "vllm:nixl_bytes_transferred_sum",
    "metrics-missing": "/metrics has no vllm:request_success_total",
    "token-sources-missing": "sources sum to 0",
    "connector-metrics-missing": "did not move: vllm:nixl_bytes_transferred_sum",
    "metrics-garbled": "/metrics is not in Prometheus' text format",
    "metrics-down": "/metrics of prefill answers HTTP 500",
    "counters-reset": "back to 1: the server was started again",
    "requests-sent-twice": "other traffic is on this server",
    "answers-without-text": "but was ''",
    "same-answer-to-all": "the answer is unchanged by another prompt's KV",
    "web-page-instead": "HTTP 200 from the decode server, but no answer",
    "key-wanted": "HTTP 401 from the decode server",
    "cut-off": "the decode server dropped the connection and is still alive",
    "stream-ends-half-way": "the stream ended after 7 events, without [DONE]",
    "stream-without-end": "without [DONE]",
    "chunks-doubled": "not the reference's",
    "usage-of-prompt-wrong": "usage of the prefill leg=",
    "usage-of-answer-wrong": "usage of the prefill leg=",
    "usage-total-wrong": "usage of the prefill leg=",
    "usage-missing": "positions of chunks of decode with usage=[]",
    "params-of-a-neighbour": "not the reference's answer",
    "params-dropped-from-answers": "prefill returned kv_transfer_params=None",
    "ids-dropped-from-answers": NO_IDS,
    "ids-dropped-from-requests": NO_IDS,
    "scores-dropped": "was asked for log-probabilities, and choice 0 of its answer has none",
    "salts-dropped": "knew of a prompt from another tenant",
    "decode-dies": "the decode server died: RuntimeError: the engine is dead",
    "slower-than-the-limit": "no answer from the decode server within 2 s",
    "dribbles-past-the-limit": "no answer from the decode server within 2 s",
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where temporary folders lie; at the end there is none, and no process that began here.

    A run that is interrupted while it starts a server leaves it to the server's minder to end.
    """
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    until(lambda: not begun_in(tmp_path), UNTIL_NOTHING_IS_LEFT_S)
    assert begun_in(tmp_path) == []
    assert list(tmp_path.glob("kvc-selftest-*")) == []


def begun_in(folder: Path) -> list[str]:
    """Processes whose TMPDIR lies in a folder."""
    mark, found = f"TMPDIR={folder}".encode(), []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if mark in Path(f"/proc/{pid}/environ").read_bytes():
                found.append(Path(f"/proc/{pid}/cmdline").read_text())
        except OSError:
            continue
    return found


def test_a_run_without_a_report_says_what_it_said(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness, "_words", lambda _: ["--connector", "nixel"])
    with pytest.raises(SuiteError, match="'nixel' is unknown; did you mean 'nixl'"):
        run_harness_faults(["key-wanted"], print)


def test_a_run_that_crashes_after_its_report_counts_for_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("matrix.render", lambda *_: 1 / 0)
    with pytest.raises(SuiteError, match=r"(?s)did not end by itself: .*ZeroDivisionError"):
        run_harness_faults(["key-wanted"], print)


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_whoever_stops_waiting_leaves_nothing_running(
    place: Path, monkeypatch: pytest.MonkeyPatch, interrupt: type[BaseException]
) -> None:
    def ended(_: Child) -> bool:
        assert until(lambda: len(begun_in(place)) > 3, limit_s=60), "servers should be starting"
        raise interrupt

    monkeypatch.setattr(Child, "ended", ended)
    with pytest.raises(interrupt):
        run_harness_faults(["key-wanted"], print)


def test_a_run_that_hangs_is_ended(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness_children, "RUN_LIMIT_S", 3)
    child = Child(place / "run", ["--check", "start/ready"], "hang_at_start")
    with pytest.raises(SuiteError, match="hangs"):
        list(each_ended([child]))


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> list[Trial]:
    """The whole list, tried; every trial was told of."""
    folder = tmp_path_factory.mktemp("selftest")
    told: list[Trial] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(folder))
        found = run_harness_faults(NAMES, told.append)
    assert told == found
    assert begun_in(folder) == []
    assert list(folder.iterdir()) == []
    return found


def these(found: list[Trial], holds: Callable[[Trial], bool]) -> list[tuple[str, str, str]]:
    return [(t.mutant, t.check, f"{t.verdict}: {t.message}") for t in found if holds(t)]


def test_no_fault_survives_and_no_check_strays(trials: list[Trial]) -> None:
    assert these(trials, lambda trial: trial.survived) == []
    assert these(trials, lambda trial: trial.strayed) == []
    wanted = {(f.name, check) for f in FAULTS for check in f.checks}
    healthy = {(harness.NONE, check) for f in FAULTS for check in f.checks}
    assert Counter((t.mutant, t.check) for t in trials) == Counter(wanted | healthy)
    assert {trial.over for trial in trials} == {"scripted"}


@pytest.mark.parametrize("name", TOLD)
def test_what_is_red_is_red_for_the_fault(trials: list[Trial], name: str) -> None:
    reds = [trial for trial in trials if trial.mutant == name and trial.red]
    assert reds
    assert [trial.message for trial in reds if TOLD[name] not in trial.message] == []


def test_every_check_that_says_so_streams(tmp_path: Path) -> None:
    """A stream without its end is seen by each of them; one never streamed, for its name."""
    refused = ("token-ids/invalid/", "token-ids/too-long/")  # by an HTTP error, which is no stream
    streamed = [
        cell
        for cell in sorted({c for found in all_checks() for c in found.cell_ids(NIXL)})
        if cell.endswith(("/streamed", ", streamed")) and not cell.startswith(refused)
    ]
    assert len(streamed) > 30
    fault = tied(dict.fromkeys(streamed, "decode:no_done"))
    suite = Suite(tmp_path)
    ended = suite.run("--connector", "nixl", "--keep-going", *asking(streamed), fault=fault)
    column = ended.report.connector("nixl")
    assert column is not None
    unseen = {cell.check: cell.verdict for cell in column.cells if "[DONE]" not in cell.message}
    last_event = {cell for cell in unseen if cell.startswith("endpoints/transfer/")}
    assert unseen.keys() == last_event
    assert {unseen[cell] for cell in last_event} <= {Verdict.FAIL}
    assert suite.left_behind() == []
