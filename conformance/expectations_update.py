"""What an expectations file would have to say, going by reports: a proposal, never a decision.

An entry that no longer holds goes, or is narrowed to what still fails; what fails and nobody has
written down is added without a reason, which a run refuses until somebody gives one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from glob import escape
from typing import get_args

from packaging.version import InvalidVersion, Version

from conformance.expectations import UNFILLED, Entry, ExpectationsFile, Facts, Place, When
from conformance.expectations_outcome import judged
from conformance.profile import Platform
from conformance.report import Report
from conformance.report_parts import EntryState
from conformance.verdict import FAILURES, Verdict

_SILENT = (Verdict.NOT_RUN, Verdict.ERROR)


@dataclass(frozen=True)
class Sight:
    """One cell that came to a judgement in one report, and where that was."""

    place: Place
    verdict: Verdict
    facts: Facts


@dataclass
class Proposal:
    """What to do with a file.

    ``replaced``: by the line of an entry, what it gives way to, which may be nothing; ``added``:
    what nobody has written down; ``notes``: what only a person can decide.
    """

    replaced: dict[int, tuple[Entry, ...]] = field(default_factory=dict)
    added: list[Entry] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def sights(reports: Iterable[Report], checks: Sequence[str]) -> list[Sight]:
    """Every judged cell of some reports. ``checks``: the ids of the checks that are known."""
    return [
        Sight(_place(column.name, cell.check, checks), judged(cell), _facts(report))
        for report in reports
        for column in report.connectors
        for cell in column.cells
        if judged(cell) not in _SILENT
    ]


def _place(connector: str, cell: str, checks: Sequence[str]) -> Place:
    own = [check for check in checks if cell == check or cell.startswith(f"{check}/")]
    return Place(connector, max(own, default=cell), cell)  # of its own beginnings the longest


def _facts(report: Report) -> Facts:
    engine = report.engine
    if engine is None:
        return Facts("not known")
    return Facts.of(engine.device, engine.distribution, engine.version, report.packages)


def unmatched(reports: Iterable[Report], file: ExpectationsFile) -> set[int]:
    """The lines of entries that matched no cell in a run with this very file."""
    results = [report.expectations for report in reports]
    return {
        entry.line
        for result in results
        if result and result.digest == file.digest
        for entry in result.entries
        if entry.state is EntryState.UNMATCHED
    }


def propose(
    entries: Sequence[Entry],
    gone: Iterable[int],
    seen: Sequence[Sight],
    today: date,
    expires: date,
) -> Proposal:
    """Compare entries with what was seen.

    ``gone``: the lines of entries that match nothing; ``expires``: the last day of those that are
    added.
    """
    found = Proposal(replaced=dict.fromkeys(gone, ()))
    left = [entry for entry in entries if entry.line not in found.replaced]
    for entry in left:
        if entry.expired(today):
            found.notes.append(f"line {entry.line}: expired on {entry.expires}: renew or remove it")
        elif not entry.flaky:
            _compare(entry, [one for one in seen if _counts(entry, one)], found)
    kept = [part for entry in left for part in found.replaced.get(entry.line, (entry,))]
    _add(_missing(seen, kept, found), expires, found)
    return found


def _counts(entry: Entry, one: Sight) -> bool:
    return entry.covers(one.place) and entry.unmet(one.facts) is None


def _compare(entry: Entry, mine: Iterable[Sight], found: Proposal) -> None:
    by_place: dict[Place, list[Verdict]] = defaultdict(list)
    for one in mine:
        by_place[one.place].append(one.verdict)
    still = {place: said for place, said in by_place.items() if entry.verdict in said}
    found.notes += _undecided(entry, still)
    if len(still) < len(by_place):
        found.replaced[entry.line] = tuple(_narrowed(entry, place) for place in still)


def _undecided(entry: Entry, still: Mapping[Place, list[Verdict]]) -> Iterator[str]:
    for place, said in still.items():
        count = said.count(entry.verdict)
        if count < len(said):
            yield (
                f"line {entry.line}: {place.name} was {entry.verdict} in {count} of {len(said)} "
                "runs: find out why, narrow 'when', or make it 'flaky: true'"
            )


def _narrowed(entry: Entry, place: Place) -> Entry:
    exact = {"connector": place.connector, "check": escape(place.cell)}
    return entry.model_copy(update=exact)


def _missing(seen: Iterable[Sight], kept: Sequence[Entry], found: Proposal) -> Iterator[Sight]:
    """What no entry speaks of; where one does and says otherwise, that is for a person."""
    for one in seen:
        entry = next((entry for entry in kept if _counts(entry, one)), None)
        if entry is None:
            yield one
        elif one.verdict in FAILURES and one.verdict is not entry.verdict:
            found.notes.append(
                f"line {entry.line}: {one.place.name} was also {one.verdict}: say which it is"
            )


def _add(missing: Iterable[Sight], expires: date, found: Proposal) -> None:
    by_place: dict[tuple[Place, str, str], list[Verdict]] = defaultdict(list)
    for one in missing:
        by_place[one.place, one.facts.device, one.facts.vllm].append(one.verdict)
    for (place, device, vllm), said in by_place.items():
        failed = [verdict for verdict in FAILURES if verdict in said]
        if not failed:
            continue
        found.added.append(
            Entry(
                connector=place.connector,
                check=escape(place.cell),
                verdict=failed[0],
                reason=UNFILLED,
                when=_seen_with(device, vllm),
                expires=expires,
                flaky=Verdict.PASS in said,
            )
        )
        found.notes += [f"{place.name} was also {other}: say which it is" for other in failed[1:]]


def _seen_with(device: str, vllm: str) -> When | None:
    """The condition that says where something was seen, and no more."""
    platforms = (device,) if device in get_args(Platform) else ()
    try:
        packages = {"vllm": f"=={Version(vllm).public}"}
    except InvalidVersion:
        packages = {}
    given = {"platforms": platforms, "packages": packages}
    return When.model_validate(given) if platforms or packages else None
