"""Tries every assumption on a server, and says in one sentence which of them do not hold."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from conformance.assumptions.assumption import Assumption, all_assumptions
from conformance.assumptions.plain import Plain
from conformance.errors import (
    CheckFailed,
    ForeignTraffic,
    NotHere,
    ReferenceFailed,
    ServerDied,
    SuiteError,
)
from conformance.metrics import patience
from conformance.report_parts import AssumptionResult

# Servers count within milliseconds; one that never does is waited for once.
SETTLE_S = 3.0
_LONGEST = 300

Told = Callable[[AssumptionResult], None]


class AssumptionsBroken(SuiteError):
    """vLLM does not do what the suite takes for granted, so no verdict would mean anything."""


def try_all(
    plain: Plain, *, intrusive: bool, told: Told = lambda _: None
) -> list[AssumptionResult]:
    """What came of each, in order. ``told`` hears of each as it comes.

    Without ``intrusive``, those that pause the server or empty its caches are left out. Raises
    :class:`ReferenceFailed` if the server dies.
    """
    trial = _Trial(plain, intrusive)
    check, results = plain.client.check, []
    try:
        with patience(SETTLE_S, 0.0):
            for assumption in all_assumptions():
                plain.client.check = f"assumptions/{assumption.id}"
                results.append(trial.result(assumption))
                told(results[-1])
    except ServerDied as problem:
        raise ReferenceFailed(f"while assumptions were tried, {problem}") from problem
    finally:
        plain.client.check = check
    return results


def broken(results: Sequence[AssumptionResult]) -> list[AssumptionResult]:
    """Those that do not hold."""
    return [result for result in results if result.held is False]


def words(results: Sequence[AssumptionResult], version: str) -> str:
    """Which do not hold, in a sentence; empty if all that were tried hold."""
    found = broken(results)
    if not found:
        return ""
    named = "; ".join(f"{result.id}: {result.seen}" for result in found)
    return f"vLLM {version} does not do what the suite takes for granted: {named}"


def in_brief(results: Sequence[AssumptionResult], version: str) -> tuple[str, bool]:
    """What came of all in a line, and whether none was found not to hold."""
    wrong = [result.id for result in broken(results)]
    held, untried = (sum(r.held is state for r in results) for state in (True, None))
    rest = f", {untried} could not be tried" if untried else ""
    rest += f", {' and '.join(wrong)} {'do' if len(wrong) > 1 else 'does'} not" if wrong else ""
    return f"assumptions: {held} hold{rest} (vLLM {version})", not wrong


class _Trial:
    """Tries one after the other, and knows which failed before."""

    def __init__(self, plain: Plain, intrusive: bool) -> None:
        self._plain = plain
        self._intrusive = intrusive
        self._failed: dict[str, Exception | None] = {}

    def result(self, of: Assumption) -> AssumptionResult:
        """What came of one."""
        held, seen = self._held(of)
        return AssumptionResult(
            id=of.id,
            says=of.says,
            held=held,
            seen=seen if len(seen) <= _LONGEST else seen[:_LONGEST] + "…",
            relied_on=list(of.relied_on),
            source=of.source,
        )

    def _held(self, of: Assumption) -> tuple[bool | None, str]:
        below = [needed for needed in of.needs if needed in self._failed]
        if below:
            self._failed[of.id] = None
            return None, f"it rests on {below[0]}"
        if of.intrusive and not self._intrusive:
            return None, "it pauses the server or empties its caches, and others may be using it"
        try:
            return True, repr(of.look(self._plain))
        except NotHere as problem:
            return None, str(problem)
        except ServerDied:
            raise
        except Exception as problem:
            return self._not_held(of, problem)

    def _not_held(self, of: Assumption, problem: Exception) -> tuple[bool | None, str]:
        if isinstance(problem, ForeignTraffic) and not self._plain.ours:
            return None, str(problem)
        # A request that several look at is sent once, and fails once.
        before = next((name for name, known in self._failed.items() if known is problem), None)
        self._failed[of.id] = problem
        if before:
            return None, f"it rests on {before}"
        if isinstance(problem, CheckFailed | SuiteError):
            return False, str(problem)
        where = traceback.extract_tb(problem.__traceback__)[-1]
        at = f"{Path(where.filename).name}:{where.lineno}"
        return False, f"it is not as it is read: {type(problem).__name__}: {problem} ({at})"
