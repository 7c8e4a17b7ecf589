"""How far a connector came, and what speaks for it where it has no row of cells."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.refusal import START
from conformance.registry import FOUNDATION
from conformance.report import Cell
from conformance.verdict import SEVERITY, Verdict
from matrix import words
from matrix.parts import Reason, Standing

_UNJUDGED = {Verdict.NOT_RUN, Verdict.ERROR}
_BROKEN = {Verdict.FAIL, Verdict.DEGRADED, Verdict.XFAIL}
_WORKS = {Verdict.PASS, Verdict.XPASS}


def standing(cells: Sequence[Cell]) -> Standing:
    """The group of a connector with these checks, whatever was won elsewhere included."""
    judged = [cell for cell in cells if cell.verdict not in _UNJUDGED]
    works = any(cell.verdict in _WORKS for cell in judged)
    if not judged and not any(_has_evidence(cell) for cell in cells):
        return Standing.NOT_TRIED
    if not works and (_only_refused(judged) or _broken(judged, START)):
        return Standing.REFUSED
    if _broken(judged, FOUNDATION):
        return Standing.NO_TRANSFER
    return Standing.SHIM if shims(cells) else Standing.RAN


def shims(cells: Sequence[Cell]) -> tuple[str, ...]:
    """What the checks that came to a judgement ran through."""
    judged = (cell for cell in cells if cell.verdict not in _UNJUDGED)
    return tuple(dict.fromkeys(cell.through for cell in judged if cell.through))


def spoken(cells: Sequence[Cell]) -> Reason | None:
    """The words for a whole connector: of the start, or else of what is worst."""
    told = [cell for cell in cells if cell.verdict not in _WORKS]
    start = [cell for cell in told if cell.check == START and cell.verdict is not Verdict.NOT_RUN]
    worst = start or sorted(told, key=lambda cell: SEVERITY.index(cell.verdict))
    return words.reason(worst[0]) if worst else None


def _has_evidence(cell: Cell) -> bool:
    return bool(cell.evidence.proofs or cell.evidence.facts)


def _only_refused(judged: Sequence[Cell]) -> bool:
    return bool(judged) and all(cell.verdict is Verdict.UNSUPPORTED for cell in judged)


def _broken(judged: Sequence[Cell], check: str) -> bool:
    return any(cell.check == check and cell.verdict in _BROKEN for cell in judged)
