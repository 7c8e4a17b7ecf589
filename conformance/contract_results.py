"""What became of the clauses of a contract, read from the child's report while it is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from conformance.contracts.stacks import innermost, stacks_of
from conformance.errors import EnvironmentProblem, UsageError


@dataclass(frozen=True)
class ClauseResult:
    """What became of one clause; ``verdict`` is one of ``conformance.verdict.Verdict``."""

    contract: str
    clause: str
    requirement: str
    verdict: str
    message: str


class Lines:
    """The report's lines, read while they are written."""

    def __init__(self, path: Path, told: Callable[[ClauseResult], None] | None) -> None:
        self._file = path.open()
        self._stacks = stacks_of(path)
        self._told = told
        self._running: ClauseResult | None = None
        self._planned: dict[tuple[str, str], ClauseResult] = {}
        self._results: dict[tuple[str, str], ClauseResult] = {}

    def read(self) -> None:
        """Take in what is there."""
        at = self._file.tell()
        while (line := self._file.readline()).endswith("\n"):
            self._take(ClauseResult(**json.loads(line)))
            at = self._file.tell()
        self._file.seek(at)  # a line that is still being written is read next time

    def complete(self) -> bool:
        """Whether every clause has its verdict."""
        return bool(self._planned) and not self._running and {*self._planned} == {*self._results}

    def finish(self, code: int | None, log: Path) -> list[ClauseResult]:
        """All results. A process that ended too early leaves clauses without one."""
        self.read()
        self._file.close()
        how = f"the process ended with {_told(code)}"
        if self._running:
            self._take(replace(self._running, verdict="fail", message=self._ended(how)))
        for key, clause in self._planned.items():
            if key not in self._results:
                self._take(replace(clause, verdict="error", message=f"never tried: {how}"))
        if not self._results:
            tail = log.read_text(errors="replace")[-2000:]
            raise EnvironmentProblem(f"no clause was tried, {how}:\n{tail}")
        return list(self._results.values())

    def _ended(self, how: str) -> str:
        hung = innermost(self._stacks)
        return f"hung in {hung}" if hung else f"crashed: {how} in this clause"

    def _take(self, result: ClauseResult) -> None:
        key = (result.contract, result.clause)
        if result.verdict == "uncollected":
            raise UsageError(f"the contract cannot be imported: {result.message}")
        if result.verdict == "planned":
            self._planned[key] = result
            return
        if result.verdict == "started":
            self._running = result
            return
        self._running = None
        # A clause that failed and whose pair then cannot be shut down stays failed.
        if key not in self._results or self._results[key].verdict == "pass":
            self._results[key] = result
            if self._told:
                self._told(result)


def _told(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
