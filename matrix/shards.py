"""Reports that are parts of one piece of work: CI jobs that each tried some of the checks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from conformance.report import Report
from matrix.merge import utc

_ONE_WORK = timedelta(days=1)


def shards_of(name: str, run: int, reports: Sequence[Report]) -> tuple[int, ...]:
    """The runs that tried other checks of a connector than ``run`` did, as part of the same work.

    That is: the same suite, engine, packages and seed, less than a day apart, and no check of
    this connector in common with it or with each other. Their results are not old ones.
    """
    taken = _checks(name, reports[run])
    found: list[int] = []
    for index in range(run - 1, -1, -1):
        checks = _checks(name, reports[index])
        if checks and not checks & taken and _same_work(reports[index], reports[run]):
            taken |= checks
            found.append(index)
    return tuple(sorted(found))


def _checks(name: str, report: Report) -> set[str]:
    return {cell.check for c in report.connectors if c.name == name for cell in c.cells}


def _same_work(one: Report, other: Report) -> bool:
    apart = abs(utc(one.started) - utc(other.started))
    return apart < _ONE_WORK and _conditions(one) == _conditions(other)


def _conditions(report: Report) -> tuple[object, ...]:
    engine = report.engine
    build = (engine.distribution, engine.version, engine.device) if engine else None
    return (report.suite, build, report.packages, report.seed)
