"""Checks: one requirement, one test, one docstring sentence; and the plan they add up to."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeVar

from conformance.features import BY_ID
from conformance.options import Level, RunOptions, unknown_check
from conformance.profile import Profile
from conformance.serving.deployment import PAIR, Key, Shape

# What is not one of these kinds is the name of a recipe: a model of the check's own.
KINDS = ("fast", "real")
CHECKS_FOLDER = Path(__file__).parent / "checks"

# What all other checks stand on, and the one that every control has to turn red.
FOUNDATION = "transfer/completion"

_Function = TypeVar("_Function", bound=Callable[..., None])


def _every_connector(_: Profile) -> bool:
    return True


def _nothing(_: object) -> None:
    """A check that was made without a function."""


@dataclass(frozen=True)
class Check:
    """A registered check. ``cases`` are variants with a cell each; none means one cell.

    ``applies``: whether it makes sense for a connector at all; ``cases_of``: cases that depend
    on the connector; ``shape``: the topology it needs. ``model``: a kind, or the recipe of a model
    that the requirement is about. ``variant``: what a profile may declare of it (``variants.py``).
    ``core_cases``: of a core check, the cases that are core too, if not all; others are extended.
    ``not_on``: devices on which it means nothing, and why. ``intrusive``: it pauses or empties
    servers, or may end them; on somebody else's it is tried only where it is asked for by name.
    """

    id: str
    feature: str
    level: Level
    requirement: str
    module: str
    cases: tuple[str, ...] = ()
    model: str = "fast"
    applies: Callable[[Profile], bool] = _every_connector
    cases_of: Callable[[Profile], tuple[str, ...]] | None = None
    shape: Shape = PAIR
    variant: str = ""
    core_cases: tuple[str, ...] = ()
    not_on: Mapping[str, str] = field(default_factory=dict, hash=False)
    intrusive: bool = False
    function: Callable[..., None] = field(default=_nothing, compare=False)

    def level_of(self, case: str) -> Level:
        """The level of one of its cells."""
        spared = self.core_cases and case not in self.core_cases
        return "extended" if self.level == "core" and spared else self.level

    @property
    def own_model(self) -> bool:
        """Whether it is about one model, and means nothing on another."""
        return self.model not in KINDS

    @property
    def conditional(self) -> bool:
        """Whether it, or which cells it has, depends on the connector."""
        return self.applies is not _every_connector or self.cases_of is not None

    def cases_for(self, profile: Profile) -> tuple[str, ...]:
        """Its cases for one connector; one without a name where it has none."""
        return (self.cases_of(profile) if self.cases_of else self.cases) or ("",)

    def cell_ids(self, profile: Profile, *levels: Level) -> list[str]:
        """The ids of its cells for one connector: all, or those of some levels."""
        return [
            f"{self.id}/{case}".rstrip("/")
            for case in self.cases_for(profile)
            if not levels or self.level_of(case) in levels
        ]


@dataclass(frozen=True)
class PlannedCell:
    """One cell that a run will try: a check's case, on a connector, with a model."""

    check: Check
    case: str
    profile: Profile
    model: str
    through: str | None = None

    @property
    def id(self) -> str:
        """The stable id of the cell within its connector."""
        return f"{self.check.id}/{self.case}" if self.case else self.check.id

    @property
    def key(self) -> Key:
        """The deployment that has to be running for it."""
        return Key(self.profile.name, self.model, self.check.shape)

    @property
    def level(self) -> Level:
        """What the cell is for: core is asked of every connector."""
        return self.check.level_of(self.case)

    @property
    def deployment(self) -> str:
        """The same in words."""
        return self.key.label


_CHECKS: dict[str, Check] = {}


def check(
    id: str,
    *,
    feature: str,
    level: Level = "core",
    cases: tuple[str, ...] = (),
    model: str = "fast",
    applies: Callable[[Profile], bool] = _every_connector,
    cases_of: Callable[[Profile], tuple[str, ...]] | None = None,
    shape: Shape = PAIR,
    variant: str = "",
    core_cases: tuple[str, ...] = (),
    not_on: Mapping[str, str] | None = None,
    intrusive: bool = False,
) -> Callable[[_Function], _Function]:
    """Register a test as a check. Its docstring's first paragraph is the requirement."""

    def register(function: _Function) -> _Function:
        requirement = " ".join((function.__doc__ or "").split("\n\n")[0].split())
        if not requirement:
            raise TypeError(f"check {id} needs a docstring: it is the requirement")
        if feature not in BY_ID:
            raise TypeError(f"check {id}: feature {feature!r} is not in features.py")
        if not set(core_cases) <= set(cases):
            raise TypeError(f"check {id}: core cases {core_cases} are not among its cases")
        found = Check(
            id=id,
            feature=feature,
            level=level,
            requirement=requirement,
            module=function.__module__,
            cases=cases,
            model=model,
            applies=applies,
            cases_of=cases_of,
            shape=shape,
            variant=variant,
            core_cases=core_cases,
            not_on=not_on or {},
            intrusive=intrusive,
            function=function,
        )
        _CHECKS[id] = found
        function.kv_check = found  # type: ignore[attr-defined]
        return function

    return register


def all_checks() -> list[Check]:
    """Every check of the suite, in the order of features, then of the files."""
    for module in pkgutil.iter_modules([str(CHECKS_FOLDER)]):
        importlib.import_module(f"conformance.checks.{module.name}")
    order = list(BY_ID)
    return sorted(_CHECKS.values(), key=lambda found: order.index(found.feature))


def plan(options: RunOptions, device: str) -> list[PlannedCell]:
    """Every cell of a run, grouped so that each deployment is started once.

    Raises :class:`UsageError` for a ``--check`` that matches nothing.
    """
    checks = all_checks()
    _must_match(options, checks)
    cells = [
        PlannedCell(
            found, case, profile, options.model_for(found.model, device), _shim(profile, device)
        )
        for profile in options.chosen_profiles().values()
        for found in checks
        if _wanted(found, profile, options)
        for case in found.cases_for(profile)
    ]
    selected = [cell for cell in cells if _selected(cell, options)]
    return sorted(selected, key=_deployment_order(selected))


def _shim(profile: Profile, device: str) -> str | None:
    """What a cell was won through, where the connector does not run here as shipped."""
    shims = [
        f"{shim.module_path}.{shim.connector}: {shim.why}" for shim in profile.shims_on(device)
    ]
    return "; ".join(shims) or None


def _wanted(found: Check, profile: Profile, options: RunOptions) -> bool:
    if options.features and found.feature not in options.features:
        return False
    if profile.tries and found.feature not in profile.tries:
        return False
    if not found.applies(profile) or (profile.control and found.id != FOUNDATION):
        return False
    if found.own_model and options.model and not (options.features or options.checks):
        return False  # another model was asked for; this one has to be asked for as well
    if found.model == "real":
        return options.real_model == "all" or (options.real_model == "auto" and profile.real_model)
    return True


def _selected(cell: PlannedCell, options: RunOptions) -> bool:
    if options.levels and cell.level not in options.levels:
        return False
    patterns = options.checks
    return not patterns or any(
        fnmatchcase(name, pattern) for pattern in patterns for name in (cell.id, cell.check.id)
    )


def _must_match(options: RunOptions, checks: list[Check]) -> None:
    profiles = options.chosen_profiles().values()
    names = [
        name
        for found in checks
        for profile in profiles
        for name in (found.id, *found.cell_ids(profile))
    ]
    for pattern in options.checks:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise unknown_check(pattern, sorted(set(names)))


def _deployment_order(
    cells: list[PlannedCell],
) -> Callable[[PlannedCell], tuple[int, bool, int, int, str]]:
    """Fast deployments of every connector first, so that they share one reference.

    Then the real model's, then those of checks with a model of their own. For each model, those
    of every connector that need a reference started otherwise come after the others, one such
    after the other. Within a connector the ordinary pair comes first: if that does not transfer,
    no other will. Controls come last: they say whether what was seen before can be believed.
    """
    models = list(dict.fromkeys(c.model for c in sorted(cells, key=_kind_of_model)))
    profiles = list(dict.fromkeys(c.profile.name for c in cells))
    references = list(dict.fromkeys(c.key.reference for c in sorted(cells, key=_extra_of)))
    return lambda cell: (
        models.index(cell.model),
        cell.profile.control,
        references.index(cell.key.reference),
        profiles.index(cell.profile.name),
        cell.check.shape.label,
    )


def _kind_of_model(cell: PlannedCell) -> int:
    return len(KINDS) if cell.check.own_model else KINDS.index(cell.check.model)


def _extra_of(cell: PlannedCell) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """How its reference is started; nothing extra sorts first."""
    extra = cell.check.shape.extra("reference")
    return extra.args, extra.env
