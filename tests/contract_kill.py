"""Runs contracts in a child and says which clauses went red on which implementation."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from conformance.contract_child import run_contracts
from conformance.contract_results import ClauseResult

TESTS = Path(__file__).parent
# All clauses that the fault hits, the named one first; a clause that cannot be set up is red.
Faults = Mapping[str, Collection[str]]


def tried(file: str, python: str = sys.executable) -> list[ClauseResult]:
    """The clauses of every contract class in a file of this folder."""
    target = str(TESTS / file)
    return run_contracts(python, target, env={"PYTHONPATH": str(TESTS)})


def red(results: list[ClauseResult], name: str) -> set[str]:
    """The clauses that the implementation of this name did not pass."""
    own = [result for result in results if result.contract == f"Test{name}"]
    assert own, f"{name} was not tried; tried were {sorted({r.contract for r in results})}"
    return {result.clause for result in own if result.verdict != "pass"}


def messages(results: list[ClauseResult], name: str) -> str:
    """What was said of its red clauses."""
    own = [r for r in results if r.contract == f"Test{name}" and r.verdict != "pass"]
    return "\n".join(f"{r.verdict} {r.clause}: {r.message}" for r in own)


def clauses(results: list[ClauseResult], name: str) -> set[str]:
    """Every clause that was tried on it."""
    return {result.clause for result in results if result.contract == f"Test{name}"}
