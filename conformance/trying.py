"""Trying one cell, and what it came to; pytest's plugin and the selftest judge alike."""

from __future__ import annotations

import time
from collections.abc import Callable

from conformance.case import Case
from conformance.judge import judge
from conformance.options import RunOptions
from conformance.pair import Pair
from conformance.recorder import planned
from conformance.registry import PlannedCell
from conformance.report import Cell
from conformance.runtime import Runtime
from conformance.verdict import Verdict


def finished(
    cell: PlannedCell,
    made: Case | None,
    problem: BaseException | None,
    duration_s: float,
    options: RunOptions,
) -> Cell:
    """A cell whose check returned, or ended with ``problem``.

    ``made``: ``None`` where it did not come to a trial, since its servers did not start.
    """
    result = planned(cell, options)
    if made:
        result.evidence = made.evidence
    found = judge(problem, result.evidence)
    result.verdict, result.message = found.verdict, found.message
    result.log_excerpt = found.excerpt
    result.duration_s = round(duration_s, 2)
    return result


def tried(runtime: Runtime, cell: PlannedCell, prepare: Callable[[list[Pair]], None]) -> Cell:
    """Try a cell without pytest around it. ``prepare`` is called once its pairs run."""
    began, made, problem = time.monotonic(), None, None
    try:
        pairs = runtime.pairs(cell)
        prepare(pairs)
        made = Case(cell, pairs, start=lambda: runtime.try_start(cell))
        cell.check.function(made)
    except Exception as raised:
        problem = raised
    result = finished(cell, made, problem, time.monotonic() - began, runtime.options)
    if result.verdict is not Verdict.PASS and not result.log_excerpt:
        result.log_excerpt = runtime.log_excerpt()
    return result
