"""Mutant connectors in real servers: each fault, and the checks that have to see it.

Faults are switched while servers run, and those that share a deployment follow one another; what
breaks the servers comes last. Before any fault, every check that is named is tried without one.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from conformance.errors import UsageError
from conformance.mutants import catalogue
from conformance.mutants.fault import EVERYWHERE, Fault
from conformance.mutants.switch import on, turn
from conformance.mutants.trial import Over, Trial, Wanted
from conformance.options import RunOptions
from conformance.pair import Pair
from conformance.profile import Profile
from conformance.profile_file import load_profile
from conformance.registry import Check, PlannedCell, all_checks
from conformance.runtime import Runtime
from conformance.serving.deployment import PAIR, Key
from conformance.trying import tried

PROFILES = Path(__file__).parent / "profiles"
FOLDER = "mutant"
CONSTRUCTORS = "conformance.mutants.constructors"
MODEL = "tiny-llama"
# A mutant that hangs costs as much each time, and on its pair an answer takes a second or two.
ANSWER_LIMIT_S = 40.0
# All of the core is tried on these, to know which checks nothing ever kills; on the first, over
# NIXL, the extended cells of the ordinary pair too.
SWEEPS = ("load-zeros", "recompute-silently")

Say = Callable[[Trial], None]


@dataclass(frozen=True)
class Attempt:
    """A cell to try on a mutant, and what is wanted of it."""

    mutant: str
    over: Over
    cell: PlannedCell
    wanted: Wanted

    @property
    def key(self) -> Key:
        """The deployment that it needs."""
        return self.cell.key

    @property
    def fault(self) -> type[Fault]:
        """What is wrong with it."""
        return catalogue.fault_named(self.mutant)


def attempts(mutants: Iterable[str], overs: Iterable[str], *, sweep: bool) -> list[Attempt]:
    """All of them, in the order in which they cost the fewest starts.

    ``sweep``: also try every core check on two mutants, and more on one of them. Raises
    :class:`UsageError` for a fault that names a cell which does not exist.
    """
    found: list[Attempt] = []
    for over in (known for known in EVERYWHERE if known in overs):
        profile = load_profile(PROFILES / f"{over}.yaml")
        for name in mutants:
            if over in catalogue.fault_named(name).over:
                found += _of_mutant(name, over, profile, sweep=sweep and name in SWEEPS)
    return sorted([*_healthy(found), *found], key=_order)


def run(found: list[Attempt], runtime: Runtime, say: Say, seed: int = 0) -> None:
    """Try them, in that order, and tell of each; the servers stay the caller's."""
    before: Attempt | None = None
    for attempt in found:
        if before and _are_broken(before, attempt):
            runtime.renew()
        say(_tried(attempt, runtime, seed))
        before = attempt


def options_for(report: Path, server_python: list[str]) -> RunOptions:
    """The run's options that mutants are tried with."""
    return RunOptions.of(
        connectors=list(EVERYWHERE),
        model=MODEL,
        real_model="none",
        keep_going=True,
        answer_limit_s=ANSWER_LIMIT_S,
        report=report,
        server_python=server_python,
    )


def _tried(attempt: Attempt, runtime: Runtime, seed: int) -> Trial:
    name, cell = attempt.mutant, attempt.cell

    def prepare(pairs: list[Pair]) -> None:
        for pair in pairs:
            if on(pair.folders[FOLDER]) != name:  # else it keeps what it remembers
                turn(pair.folders[FOLDER], name)
            # Prompts that no other mutant was asked: what is in a cache was not loaded.
            pair.prompts.seed = zlib.crc32(f"{seed} {name}".encode())

    result = tried(runtime, cell, prepare)
    return Trial(
        mutant=name,
        over=attempt.over,
        check=cell.id,
        wanted=attempt.wanted,
        verdict=result.verdict,
        message=result.message,
        duration_s=result.duration_s,
    )


def _are_broken(before: Attempt, following: Attempt) -> bool:
    """Whether servers are of no use after a mutant, for another one."""
    return before.mutant != following.mutant and before.fault.ends_servers


def _of_mutant(name: str, over: str, profile: Profile, *, sweep: bool) -> Iterator[Attempt]:
    fault = catalogue.fault_named(name)
    if fault.constructed_as:
        profile = profile.model_copy(
            update={
                "name": f"{profile.name}-{name}",
                "connector": fault.constructed_as,
                "module_path": CONSTRUCTORS,
            }
        )
    named = dict.fromkeys(fault.red, Wanted.RED) | dict.fromkeys(fault.green, Wanted.GREEN)
    cells = {cell.id: cell for cell in _cells(profile)}
    for id, wanted in named.items():
        if id in cells:
            yield Attempt(name, over, cells[id], wanted)  # type: ignore[arg-type]
    if not any(id in cells for id in fault.red):
        raise UsageError(f"{name} over {over}: none of the cells that have to see it exists")
    for id, cell in cells.items() if sweep else ():
        if id not in named and _is_swept(name, over, cell):
            yield Attempt(name, over, cell, Wanted.SEEN)  # type: ignore[arg-type]


def _is_swept(name: str, over: str, cell: PlannedCell) -> bool:
    if cell.check.shape != PAIR or cell.check.intrusive:
        return False
    return cell.level == "core" or (name, over) == (SWEEPS[0], "nixl")


def _healthy(found: list[Attempt]) -> Iterator[Attempt]:
    """Each cell once on the connector without a fault; all of them have to be green."""
    seen: dict[tuple[str, str], Attempt] = {}
    for attempt in found:
        if not attempt.fault.constructed_as and attempt.wanted is not Wanted.SEEN:
            seen.setdefault((attempt.over, attempt.cell.id), attempt)
    for attempt in seen.values():
        yield Attempt(catalogue.NONE, attempt.over, attempt.cell, Wanted.GREEN)


def _order(attempt: Attempt) -> tuple[object, ...]:
    shape = attempt.cell.check.shape
    return (
        shape.label,
        EVERYWHERE.index(attempt.over),
        bool(attempt.fault.constructed_as),
        attempt.mutant != catalogue.NONE,
        attempt.fault.ends_servers,
        attempt.mutant,
        # What it leaves green comes first: a red one may leave the servers in pieces.
        attempt.wanted is not Wanted.GREEN,
    )


def _cells(profile: Profile) -> Iterator[PlannedCell]:
    for check in all_checks():
        if check.model == "fast" or check.model == MODEL:
            yield from _cells_of(check, profile)


def _cells_of(check: Check, profile: Profile) -> Iterator[PlannedCell]:
    if check.applies(profile):
        for case in check.cases_for(profile):
            yield PlannedCell(check, case, profile, MODEL)
