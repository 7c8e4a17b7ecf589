"""From how a check ended to a verdict: the only place where exceptions get a meaning."""

from __future__ import annotations

import traceback
from dataclasses import dataclass

from conformance.errors import (
    CheckFailed,
    NotHere,
    Refused,
    ServerStartError,
    SuiteError,
)
from conformance.evidence import Evidence
from conformance.verdict import Verdict, decide


@dataclass(frozen=True)
class Judgement:
    """A verdict, the sentence that explains it, and the log lines behind it if it has its own."""

    verdict: Verdict
    message: str
    excerpt: str | None = None


def judge(problem: BaseException | None, evidence: Evidence) -> Judgement:
    """The verdict on a check that ended with ``problem``, or that returned.

    What a requirement says goes through ``expect``, which raises :class:`CheckFailed`; a bare
    assertion that fails is about the suite itself, and says nothing of a connector.
    """
    if problem is None:
        return Judgement(*decide(evidence))
    if isinstance(problem, ServerStartError):
        verdict = Verdict.FAIL if problem.blames_connector else Verdict.ERROR
        return Judgement(verdict, str(problem), problem.excerpt or None)
    if isinstance(problem, CheckFailed):
        return Judgement(Verdict.FAIL, str(problem), problem.excerpt or None)
    if isinstance(problem, Refused):
        return Judgement(Verdict.UNSUPPORTED, str(problem))
    if isinstance(problem, NotHere):
        return Judgement(Verdict.NOT_RUN, str(problem))
    if isinstance(problem, SuiteError):
        return Judgement(Verdict.ERROR, str(problem))
    text = "".join(traceback.format_exception(problem)[-6:])
    return Judgement(Verdict.ERROR, f"{type(problem).__name__}: {problem}", text)
