"""Requirement sets: what a certificate stands for, frozen under a name and a digest.

A set has every core check that runs on the fast model. A published set is never edited: when the
catalogue of checks changes, ``python -m conformance.requirement_sets`` writes the next version
beside it, and certificates of both can be told apart.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from conformance.errors import UsageError
from conformance.profile import Profile
from conformance.registry import Check, all_checks

FOLDER = Path(__file__).parent
SET_ID = "core"


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Requirement(_Model):
    """One cell, or, where ``conditional``, a check with those of its cells that a connector has.

    A conditional one is asked of the connectors to which it applies, such as those whose handoff
    lets both legs go at once.
    """

    cell: str
    feature: str
    level: str
    requirement: str
    conditional: bool = False


class RequirementSet(_Model):
    """``digest``: SHA-256 over what is required, in the order of cells."""

    id: str
    version: int
    digest: str
    requirements: tuple[Requirement, ...]

    @property
    def name(self) -> str:
        """Such as ``core-1``."""
        return f"{self.id}-{self.version}"


def catalogue() -> tuple[Requirement, ...]:
    """The requirements that a set made now would have, in the order of cells."""
    found = [
        Requirement(
            cell=cell,
            feature=check.feature,
            level=check.level,
            requirement=check.requirement,
            conditional=check.conditional,
        )
        for check in _candidates()
        for cell in ([check.id] if check.conditional else _cells(check))
    ]
    return tuple(sorted(found, key=lambda one: one.cell))


def digest_of(requirements: Iterable[Requirement]) -> str:
    """Over cell ids, requirement sentences and levels."""
    rows = sorted((r.cell, r.requirement, r.level, r.conditional) for r in requirements)
    return hashlib.sha256(json.dumps(rows, ensure_ascii=False).encode()).hexdigest()


def frozen(version: int, requirements: tuple[Requirement, ...]) -> RequirementSet:
    """A set of these requirements."""
    return RequirementSet(
        id=SET_ID, version=version, digest=digest_of(requirements), requirements=requirements
    )


def latest(folder: Path = FOLDER) -> RequirementSet | None:
    """The set with the highest version. Raises :class:`UsageError` for one that was edited."""
    found = [_read(file) for file in folder.glob(f"{SET_ID}-*.json")]
    return max(found, key=lambda one: one.version, default=None)


def differences(kept: RequirementSet, now: tuple[Requirement, ...]) -> list[str]:
    """What the catalogue has gained, lost and changed since a set was frozen."""
    before = {one.cell: one for one in kept.requirements}
    after = {one.cell: one for one in now}
    return [
        *(f"new: {cell}" for cell in sorted(after.keys() - before.keys())),
        *(f"gone: {cell}" for cell in sorted(before.keys() - after.keys())),
        *(f"changed: {c}" for c in sorted(before.keys() & after.keys()) if before[c] != after[c]),
    ]


def required_cells(kept: RequirementSet, profile: Profile) -> list[str]:
    """The cells that a set asks of a connector."""
    by_id = {check.id: check for check in _candidates()}
    cells = []
    for one in kept.requirements:
        if not one.conditional:
            cells.append(one.cell)
        elif by_id[one.cell].applies(profile):
            cells += by_id[one.cell].cell_ids(profile, "core")
    return cells


def not_asked(kept: RequirementSet, profile: Profile) -> list[str]:
    """The checks of a set that do not apply to a connector."""
    by_id = {check.id: check for check in _candidates()}
    return [
        one.cell
        for one in kept.requirements
        if one.conditional and not by_id[one.cell].applies(profile)
    ]


def text_of(kept: RequirementSet) -> str:
    """A set as it is committed."""
    return json.dumps(kept.model_dump(), indent=1, ensure_ascii=False) + "\n"


def _candidates() -> list[Check]:
    return [check for check in all_checks() if check.level == "core" and check.model == "fast"]


def _cells(check: Check) -> list[str]:
    core = [case for case in check.cases if check.level_of(case) == "core"]
    return [f"{check.id}/{case}" for case in core] or [check.id]


def _read(file: Path) -> RequirementSet:
    found = RequirementSet.model_validate_json(file.read_text(encoding="utf-8"))
    if found.digest != digest_of(found.requirements):
        raise UsageError(
            f"{file}: digest {found.digest[:12]} is not that of its requirements "
            f"({digest_of(found.requirements)[:12]}): a frozen set is never edited; restore it, "
            "and run python -m conformance.requirement_sets for the next version"
        )
    return found
