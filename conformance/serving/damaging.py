"""Makes, for a deployment, what can damage its connector's store (``conformance/damage``)."""

from __future__ import annotations

import os
from pathlib import Path

from conformance.damage import CommandDamage, Damage, FileDamage, MemoryDamage
from conformance.placeholders import fill
from conformance.profile import Profile
from conformance.serving.leases import Leases


def damage_for(profile: Profile, leases: Leases) -> Damage | None:
    """By the method that the profile names; ``None`` where it does no damage."""
    way = profile.causality
    if way.method == "damage_files":
        return FileDamage(leases.folders[way.dir or ""])
    if way.method == "damage_memory":
        return MemoryDamage(Path(fill(way.segment, leases.shared)))
    if way.method == "damage_command":
        command = [str(part) for part in fill(way.command, leases.shared)]
        return CommandDamage(command, environment(profile, leases))
    return None


def environment(profile: Profile, leases: Leases) -> dict[str, str]:
    """The prefill instance's variables, as far as their leases are shared, and PYTHONPATH."""
    shared = {
        name: str(fill(value, leases.shared))
        for name, value in profile.prefill.env.items()
        if leases.covers(value)
    }
    return {**shared, **python_path(profile)}


def python_path(profile: Profile) -> dict[str, str]:
    """PYTHONPATH with the folders that the profile names; empty where it names none."""
    folders = [str(folder) for folder in profile.python_folders()]
    if not folders:
        return {}
    inherited = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([*folders, *([inherited] if inherited else [])])}
