"""The cells that an entry can be about: those of a run's plan, of its selection, and all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from fnmatch import fnmatchcase

from conformance.errors import SuiteError
from conformance.expectations import Facts, Place
from conformance.expectations_file import load_expectations
from conformance.expectations_ruling import Ruling, Scope, rule
from conformance.options import Level, RunOptions
from conformance.profile import Profile
from conformance.profile_file import builtin_profiles, load_profile
from conformance.registry import Check, PlannedCell, all_checks
from conformance.serving.engine import Engines


def ruling_of(
    options: RunOptions, cells: Sequence[PlannedCell], engines: Engines, today: date
) -> Ruling:
    """What the run's file, if it has one, says of its cells. Raises :class:`UsageError`."""
    if options.expectations is None:
        return Ruling()
    profiles = options.chosen_profiles()
    scope = Scope(planned(cells), list(_selected(options, profiles)), known_places(options))
    return rule(
        load_expectations(options.expectations),
        scope,
        lambda connector: _facts(engines, profiles[connector]),
        today,
    )


def planned(cells: Iterable[PlannedCell]) -> list[Place]:
    """Where planned cells stand, without those of controls, which have to go red."""
    return [
        Place(cell.profile.name, cell.check.id, cell.id)
        for cell in cells
        if not cell.profile.control
    ]


def known_places(options: RunOptions) -> set[Place]:
    """Every cell of every known connector, whether or not its check is for the connector."""
    own = map(load_profile, options.profiles)
    return {
        place
        for profile in (*builtin_profiles().values(), *own)
        for found in all_checks()
        for place in _places(profile, found)
    }


def _selected(options: RunOptions, profiles: dict[str, Profile]) -> Iterator[Place]:
    for profile in profiles.values():
        for found in all_checks():
            if _asked(found, profile, options):
                places = _places(profile, found, *options.levels)
                yield from (place for place in places if _named(place, options.checks))


def _asked(found: Check, profile: Profile, options: RunOptions) -> bool:
    """As a plan has it, but for whether the check is for the connector."""
    if options.features and found.feature not in options.features:
        return False
    if found.own_model and options.model and not (options.features or options.checks):
        return False
    if found.model == "real":
        return options.real_model == "all" or (options.real_model == "auto" and profile.real_model)
    return True


def _named(place: Place, patterns: Sequence[str]) -> bool:
    return not patterns or any(
        fnmatchcase(name, pattern) for pattern in patterns for name in (place.cell, place.check)
    )


def _places(profile: Profile, found: Check, *levels: Level) -> list[Place]:
    if profile.control:
        return []
    return [Place(profile.name, found.id, cell) for cell in found.cell_ids(profile, *levels)]


def _facts(engines: Engines, profile: Profile) -> Facts:
    try:
        engine = engines.of(profile)
    except SuiteError:  # its cells will say so
        engine = engines.default
    return Facts.of(engine.device, engine.distribution, engine.version, engine.packages)
