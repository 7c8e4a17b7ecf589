"""Why cells are not green, each reason once, however many checks and connectors have it.

What is known to fail comes after what is not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from conformance.verdict import Verdict
from matrix import words
from matrix.model import Column, Matrix, MatrixCell
from matrix.parts import CheckResult, Reason

# Verdicts that say nothing against a connector: told in one line, without a replay for each.
_QUIET = {Verdict.NOT_RUN, Verdict.UNSUPPORTED}


@dataclass(frozen=True)
class Told:
    """One check that ended for a reason, and the connector it was tried on."""

    column: Column
    cell: MatrixCell
    result: CheckResult


@dataclass(frozen=True)
class Cause:
    """One reason and every check that ended for it; ``number`` counts the loud ones from 1."""

    number: int
    reason: Reason
    told: tuple[Told, ...]

    def connectors(self) -> list[tuple[Column, list[Told]]]:
        """The checks by connector."""
        columns = dict.fromkeys(t.column.name for t in self.told)
        groups = [[t for t in self.told if t.column.name == name] for name in columns]
        return [(group[0].column, group) for group in groups]

    @property
    def known(self) -> bool:
        """Whether an expectations file names the failure."""
        return self.reason.verdict is Verdict.XFAIL


def loud(matrix: Matrix) -> tuple[Cause, ...]:
    """What is broken, or could not be judged: with a replay line for each check."""
    told = [t for t in _not_green(matrix) if t.result.cell.verdict not in _QUIET]
    return _causes(sorted(told, key=lambda t: t.result.cell.verdict is Verdict.XFAIL))


def quiet(matrix: Matrix) -> tuple[Cause, ...]:
    """What was not tried or is not supported, beyond what a connector's one line says already."""
    return _causes(
        told
        for told in _not_green(matrix)
        if told.result.cell.verdict in _QUIET
        and words.reason(told.result.cell) != told.column.reason
    )


def _not_green(matrix: Matrix) -> Iterable[Told]:
    for group in matrix.grouped().values():
        for column in group:
            for cell in matrix.of(column.name):
                for result in cell.checks:
                    if result.cell.verdict is not Verdict.PASS:
                        yield Told(column, cell, result)


def _causes(found: Iterable[Told]) -> tuple[Cause, ...]:
    groups: dict[Reason, list[Told]] = {}
    for told in found:
        groups.setdefault(words.reason(told.result.cell), []).append(told)
    return tuple(
        Cause(number, reason, tuple(group))
        for number, (reason, group) in enumerate(groups.items(), start=1)
    )
