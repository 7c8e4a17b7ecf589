"""Verdicts, and the one rule that turns evidence into one.

No green cell without proof: a pass needs evidence that is not empty. Every branch that could
turn "did not look" into green ends in ``error`` instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum, StrEnum

from conformance.evidence import Evidence, Outcome, Step


class Verdict(StrEnum):
    """What a run says of one check on one connector."""

    PASS = "pass"
    FAIL = "fail"
    DEGRADED = "degraded"
    UNSUPPORTED = "unsupported"
    NOT_RUN = "not_run"
    ERROR = "error"
    XFAIL = "xfail"
    XPASS = "xpass"


MEANING: dict[Verdict, str] = {
    Verdict.PASS: "requirement held, with evidence",
    Verdict.FAIL: "requirement broken",
    Verdict.DEGRADED: "right output, but the KV was recomputed",
    Verdict.UNSUPPORTED: "declared unsupported with a source, or refused clearly at start",
    Verdict.NOT_RUN: "could not be tried here, or was not reached",
    Verdict.ERROR: "the harness failed, or there was no evidence",
    Verdict.XFAIL: "failed as the expectations file says",
    Verdict.XPASS: "expected to fail, but no longer does",
}

# Worst first: what a group of cells adds up to is the first of these it contains.
SEVERITY: tuple[Verdict, ...] = (
    Verdict.ERROR,
    Verdict.FAIL,
    Verdict.DEGRADED,
    Verdict.XPASS,
    Verdict.XFAIL,
    Verdict.NOT_RUN,
    Verdict.UNSUPPORTED,
    Verdict.PASS,
)


# What an expectations file can expect. An error says nothing of a connector, so it excuses nothing.
FAILURES: tuple[Verdict, ...] = (Verdict.FAIL, Verdict.DEGRADED)


class ExitCode(IntEnum):
    """Exit codes of the command line."""

    CONFORMANT = 0
    NOT_CONFORMANT = 1
    USAGE = 2
    HARNESS = 3
    NOTHING_RAN = 4
    INTERRUPTED = 130  # 128 + SIGINT, what every shell expects of Ctrl-C


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict that a group of cells adds up to; ``not_run`` for an empty group."""
    seen = set(verdicts)
    return next((v for v in SEVERITY if v in seen), Verdict.NOT_RUN)


def exit_code(verdicts: Iterable[Verdict]) -> ExitCode:
    """The exit code of a run that ended by itself.

    ``not_run`` beside other verdicts does not change the code: a missing prerequisite of
    something asked for by name is recorded as ``error`` by whoever finds it missing.
    """
    seen = set(verdicts)
    if seen & {Verdict.FAIL, Verdict.DEGRADED, Verdict.XPASS}:
        return ExitCode.NOT_CONFORMANT
    if Verdict.ERROR in seen:
        return ExitCode.HARNESS
    if seen & {Verdict.PASS, Verdict.XFAIL}:
        return ExitCode.CONFORMANT
    return ExitCode.NOTHING_RAN


def against(found: Verdict, expected: Verdict, *, flaky: bool) -> Verdict:
    """What a verdict becomes where a failure is expected.

    Only the very failure that is expected is let through, and a pass only where the failure is
    said to come and go. Everything else stays what it is, an ``error`` above all.
    """
    if found is Verdict.PASS:
        return Verdict.PASS if flaky else Verdict.XPASS
    return Verdict.XFAIL if found is expected and found in FAILURES else found


def decide(evidence: Evidence) -> tuple[Verdict, str]:
    """The verdict that the evidence of a finished check supports, and the reason for it.

    Precedence: a broken step is a failure whatever else holds; a blind control means nothing
    the counters say can be believed; a recomputing step makes a right answer ``degraded``.
    """
    steps = [step for proof in evidence.proofs for step in proof.steps]
    for outcome, verdict in (
        (Outcome.BROKEN, Verdict.FAIL),
        (Outcome.BLIND, Verdict.ERROR),
        (Outcome.RECOMPUTED, Verdict.DEGRADED),
    ):
        found = [step for step in steps if step.outcome is outcome]
        if found:
            return verdict, _reason(found)
    if not any(step.outcome is Outcome.HELD for step in steps) and not evidence.facts:
        return Verdict.ERROR, "no evidence was recorded: the check proves nothing"
    return Verdict.PASS, _notes(steps)


def _reason(steps: list[Step]) -> str:
    seen = dict.fromkeys(f"{step.name}: {step.summary}" for step in steps)
    return "; ".join(seen)


def _notes(steps: list[Step]) -> str:
    excused = [s for s in steps if s.outcome is Outcome.NOT_APPLICABLE and s.figures.get("excuse")]
    return _reason(excused)
