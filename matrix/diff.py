"""What changed between two sets of reports, check by check: yesterday's run against today's.

Verdicts are those that the matrix shows, so a pass without proof is none on either side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from conformance.evidence import Rung
from conformance.verdict import ExitCode, Verdict
from matrix import words
from matrix.merge import settled
from matrix.model import Column, Matrix
from matrix.parts import CheckResult


class Kind(StrEnum):
    """What became of a check; in the order in which a reader wants to know.

    ``lost``: it passed and does not now, because it broke, was not run, or is gone.
    ``weaker``: it still passes, on fewer steps of the ladder or through a shim.
    ``flaky``: it is known to come and go, and did.
    """

    LOST = "lost"
    CHANGED = "changed"
    WEAKER = "weaker"
    FLAKY = "flaky"
    NEW = "new"
    GONE = "gone"
    WON = "won"


_WORKS = (Verdict.PASS, Verdict.XPASS)


@dataclass(frozen=True)
class State:
    """A check as one side has it. ``reached`` is how far up the ladder its weakest pass got.

    ``flaky``: the expectations file lets it pass or fail.
    """

    verdict: Verdict
    message: str
    reached: Rung | None
    through: str | None
    replay: str
    flaky: bool = False


@dataclass(frozen=True)
class Change:
    """One check of one connector that is not what it was; a side that lacks it is null."""

    kind: Kind
    connector: str
    title: str
    check: str
    feature: str
    before: State | None
    now: State | None


@dataclass(frozen=True)
class Diff:
    """Every change, worst kind first, and how many checks are what they were."""

    changes: tuple[Change, ...]
    same: int

    def of(self, kind: Kind) -> tuple[Change, ...]:
        """The changes of one kind."""
        return tuple(change for change in self.changes if change.kind is kind)

    @property
    def exit_code(self) -> ExitCode:
        """1 if a check that passed before does not now; what is new is for the run to judge."""
        return ExitCode.NOT_CONFORMANT if self.of(Kind.LOST) else ExitCode.CONFORMANT


_Key = tuple[str, str]  # connector, check
_Found = tuple[Column, Sequence[CheckResult]]


def diff(old: Matrix, new: Matrix) -> Diff:
    """What is different in ``new``; connectors and checks in their order there, gone ones last."""
    before, now = _checks(old), _checks(new)
    keys = list(dict.fromkeys([*now, *before]))
    changes = [c for key in keys for c in _change(key, before.get(key), now.get(key))]
    order = list(Kind)
    return Diff(
        changes=tuple(sorted(changes, key=lambda change: order.index(change.kind))),
        same=len(keys) - len(changes),
    )


def _checks(matrix: Matrix) -> Mapping[_Key, _Found]:
    found: dict[_Key, tuple[Column, list[CheckResult]]] = {}
    for column in matrix.columns:
        for result in (r for cell in matrix.of(column.name) for r in cell.checks):
            found.setdefault((column.name, result.cell.check), (column, []))[1].append(result)
    return found


def _change(key: _Key, before: _Found | None, now: _Found | None) -> Iterator[Change]:
    old, new = (_state(side[1]) if side else None for side in (before, now))
    kind = _kind(old, new)
    column, results = now or before or (None, ())
    if kind and column:
        yield Change(kind, key[0], column.title, key[1], results[0].cell.feature, old, new)


def _kind(old: State | None, new: State | None) -> Kind | None:
    worked, works = (side is not None and side.verdict in _WORKS for side in (old, new))
    if old and new and old.verdict is not new.verdict and _comes_and_goes(old, new):
        return Kind.FLAKY
    if worked and not works:
        return Kind.LOST
    if old is None or new is None:
        return Kind.NEW if old is None else Kind.GONE
    if works and not worked:
        return Kind.WON
    if old.verdict is not new.verdict:
        return Kind.CHANGED
    return Kind.WEAKER if works and _is_weaker(new, old) else None


def _comes_and_goes(old: State, new: State) -> bool:
    """Whether one side passes and the other fails as a flaky check may; no error is excused."""
    let_through = (Verdict.PASS, Verdict.XFAIL)
    return new.flaky and old.verdict in let_through and new.verdict in let_through


def _is_weaker(new: State, old: State) -> bool:
    fewer = _height(new.reached) < _height(old.reached)
    return fewer or bool(new.through and not old.through)


def _height(rung: Rung | None) -> int:
    return 0 if rung is None else list(Rung).index(rung) + 1


def _state(results: Sequence[CheckResult]) -> State:
    verdict = settled(results)
    told = next(r.cell for r in results if r.cell.verdict is verdict)
    passes = [r.cell.evidence.reached for r in results if r.cell.verdict in _WORKS]
    said = "" if verdict in _WORKS else words.reason(told).text
    return State(
        verdict=verdict,
        message=said,
        reached=min(passes, key=_height, default=None),
        through=next((r.cell.through for r in results if r.cell.through), None),
        replay=told.replay,
        flaky=told.expectation is not None and told.expectation.flaky,
    )
