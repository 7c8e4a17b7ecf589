"""What an exception means: whose fault it is decides between fail, error and not run."""

from __future__ import annotations

import traceback

import pytest

from conformance.client import Rejected
from conformance.errors import (
    CheckFailed,
    EnvironmentProblem,
    ForeignTraffic,
    HandoffBroken,
    ModelError,
    NotHere,
    Refused,
    ReportError,
    ServerDied,
    ServerStartError,
    SuiteError,
    UsageError,
)
from conformance.evidence import Evidence, Fact, Outcome, Proof, Rung, Step
from conformance.judge import Judgement, judge
from conformance.verdict import Verdict

FINE = Evidence(facts=[Fact(what="status", seen=400)])


@pytest.mark.parametrize(
    ("problem", "verdict"),
    [
        (CheckFailed("x=1, but should be 2"), Verdict.FAIL),
        (HandoffBroken("prefill returned nothing"), Verdict.FAIL),
        (Rejected(500, {"error": "boom"}, "the decode server"), Verdict.FAIL),
        (ServerDied("the decode server died: boom"), Verdict.FAIL),
        (AssertionError("1 == 2"), Verdict.ERROR),
        (ServerStartError("refused", blames_connector=True), Verdict.FAIL),
        (ServerStartError("port taken"), Verdict.ERROR),
        (Refused("connector says: no HMA"), Verdict.UNSUPPORTED),
        (NotHere("needs a GPU"), Verdict.NOT_RUN),
        (SuiteError("suite"), Verdict.ERROR),
        (EnvironmentProblem("no nixl"), Verdict.ERROR),
        (ForeignTraffic("2 of 1"), Verdict.ERROR),
        (ModelError("checksum"), Verdict.ERROR),
        (ReportError("disk full"), Verdict.ERROR),
        (UsageError("bad"), Verdict.ERROR),
        (KeyError("store"), Verdict.ERROR),
        (TimeoutError("slow"), Verdict.ERROR),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value,
)
def test_each_exception_has_a_verdict_whatever_was_seen(
    problem: Exception, verdict: Verdict
) -> None:
    found = judge(problem, FINE)
    assert found.verdict is verdict
    assert str(problem) in found.message
    assert judge(problem, Evidence()).verdict is verdict


def test_a_check_that_returns_is_judged_by_its_evidence() -> None:
    assert judge(None, FINE) == Judgement(Verdict.PASS, "")
    assert judge(None, Evidence()).verdict is Verdict.ERROR
    step = Step(name=Rung.MOVEMENT, outcome=Outcome.RECOMPUTED, summary="did not move")
    recomputed = Evidence(proofs=[Proof(subject="s", steps=[step])])
    assert judge(None, recomputed) == Judgement(Verdict.DEGRADED, "movement: did not move")


def test_a_servers_own_log_comes_with_its_death() -> None:
    died = judge(ServerDied("died", "Traceback …"), FINE)
    start = judge(ServerStartError("died", "boom", "Traceback …"), FINE)
    assert died.excerpt == start.excerpt == "Traceback …"
    assert judge(ServerDied("died"), FINE).excerpt is None


def test_an_assertion_of_the_suite_about_itself_blames_no_connector() -> None:
    found = judge(AssertionError(), FINE)
    assert found.verdict is Verdict.ERROR
    assert found.message.startswith("AssertionError")


def test_of_a_long_traceback_the_end_is_kept() -> None:
    def deeper(levels: int) -> None:
        if levels == 0:
            raise KeyError("store")
        deeper(levels - 1)
        deeper(levels - 2)

    with pytest.raises(KeyError) as caught:
        deeper(1)
    with pytest.raises(KeyError) as twice:
        deeper(9)
    short, long = (judge(found.value, FINE).excerpt or "" for found in (caught, twice))
    whole = traceback.format_exception(twice.value)
    assert long == "".join(whole[-6:])
    assert len(whole) > 6
    assert short.startswith("Traceback (most recent call last):\n")


def test_an_unforeseen_exception_is_ours_and_brings_its_traceback() -> None:
    try:
        raise KeyError("store")
    except KeyError as problem:
        found = judge(problem, FINE)
    assert found.verdict is Verdict.ERROR
    assert found.message == "KeyError: 'store'"
    assert found.excerpt is not None
    assert "test_judge.py" in found.excerpt
