"""Expectations applied to a run: which entry each planned cell has, and what that makes of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from conformance.errors import UsageError
from conformance.expectations import Entry, ExpectationsFile, Facts, Place
from conformance.report import Cell
from conformance.report_parts import EntryResult, EntryState, ExpectationsResult, Expected
from conformance.verdict import Verdict, against


@dataclass(frozen=True)
class Scope:
    """The cells of a run: those that are ``planned``, those that it ``selected`` whether or not
    they are for the connector, and all that are ``known``.
    """

    planned: Sequence[Place]
    selected: Collection[Place]
    known: Collection[Place]


class Ruling:
    """What a run's file says of its cells; without a file, nothing."""

    def __init__(
        self, file: ExpectationsFile | None = None, of_cell: dict[Place, Entry] | None = None
    ) -> None:
        self._file = file
        self._of_cell = {place.name: entry for place, entry in (of_cell or {}).items()}
        self.result: ExpectationsResult | None = None

    def settle(self, connector: str, cell: Cell) -> None:
        """Give a cell that was judged the verdict that it has under its expectation."""
        entry = self._of_cell.get(f"{connector}/{cell.check}")
        if entry is None or self._file is None:
            return
        seen = cell.verdict
        cell.verdict = against(seen, entry.verdict, flaky=entry.flaky)
        cell.expectation = Expected(
            at=self._file.at(entry),
            verdict=entry.verdict,
            seen=seen,
            reason=entry.reason,
            link=entry.link,
            expires=entry.expires,
            flaky=entry.flaky,
        )
        if cell.verdict is Verdict.XPASS:
            cell.message = (
                f"passes, where {self._file.at(entry)} expects {entry.verdict}: remove it there, "
                "so that a relapse is seen"
            )


def rule(
    file: ExpectationsFile,
    scope: Scope,
    facts_of: Callable[[str], Facts],
    today: date,
) -> Ruling:
    """Apply a file to a run's plan. ``facts_of``: what a connector's servers run on, by its name.

    Raises :class:`UsageError` where two entries speak of one cell.
    """
    of_cell: dict[Place, Entry] = {}
    results = []
    for entry in file.entries:
        result = _first_look(entry, scope, facts_of, today)
        results.append(result)
        for place in _applied(result, scope.planned):
            if place in of_cell:
                raise _both(file, of_cell[place], entry, place)
            of_cell[place] = entry
    ruling = Ruling(file, of_cell)
    ruling.result = ExpectationsResult(
        file=file.name, digest=file.digest, day=today, entries=results
    )
    return ruling


def _applied(result: EntryResult, planned: Iterable[Place]) -> list[Place]:
    return [place for place in planned if place.name in result.cells]


def _first_look(
    entry: Entry, scope: Scope, facts_of: Callable[[str], Facts], today: date
) -> EntryResult:
    """An entry before anything was tried."""
    covered = entry.covered(scope.planned)
    unmet = {p: why for p in covered if (why := entry.unmet(facts_of(p.connector)))}
    here = [place.name for place in covered if place not in unmet]
    state, note = EntryState.UNTRIED, ""
    if not entry.covered(scope.known):
        state, note = EntryState.UNMATCHED, "there is no such connector or check"
    elif entry.expired(today):
        state, note = EntryState.EXPIRED, f"its last day was {entry.expires}"
    elif covered and not here:
        state, note = EntryState.ELSEWHERE, unmet[covered[0]]
    elif not covered and (selected := entry.covered(scope.selected)):
        state, note = _not_planned(entry, facts_of(selected[0].connector))
    return EntryResult(
        **entry.model_dump(exclude={"when"}),
        when=entry.when.words() if entry.when else "",
        state=state,
        note=note,
        cells=here if state is EntryState.UNTRIED else [],
    )


def _not_planned(entry: Entry, facts: Facts) -> tuple[EntryState, str]:
    unmet = entry.unmet(facts)
    if unmet:
        return EntryState.ELSEWHERE, unmet
    return EntryState.UNMATCHED, "the run was asked for it, and has no such cell"


def _both(file: ExpectationsFile, first: Entry, second: Entry, place: Place) -> UsageError:
    return UsageError(
        f"expectations {file.name}: lines {first.line} and {second.line} both speak of "
        f"{place.name}; narrow one of them, or remove it"
    )
