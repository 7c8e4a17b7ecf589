"""Profiles made of others: MultiConnector with children from any profiles.

Children's leases are renamed, so that two children never share a port or folder by accident.
"""

from __future__ import annotations

from typing import Any

from conformance.errors import UsageError
from conformance.handoffs import merged_name
from conformance.placeholders import renamed
from conformance.profile import DeclaredVariant, Instance, Movement, Profile, Role
from conformance.variants import Variant


def compose(parent: Profile, children: list[Profile]) -> Profile:
    """The parent with what its children bring: leases, daemons, environment, proof.

    vLLM loads from the first child that has tokens and saves to all (0.32.0,
    ``multi_connector.py``): so the first child says how much is promised and how causality is
    shown, and every child's own record of saving has to move.
    """
    parts = [_own_leases(child) for child in children]
    everyone = [parent, *parts]
    return parent.model_copy(
        update={
            "parts": tuple(parts),
            "handoff": merged_name([part.handoff for part in parts]),
            "granularity": parts[0].granularity,
            "variants": {**_of_the_first(parts[0]), **parent.variants},
            "causality": parts[0].causality,
            "movement": _movement(parts),
            "settle": parts[0].settle,
            "daemons": tuple(daemon for one in everyone for daemon in one.daemons),
            "files": {name: text for one in everyone for name, text in one.files.items()},
            "packages": tuple(dict.fromkeys(name for one in everyone for name in one.packages)),
            "python_path": tuple(
                dict.fromkeys(path for one in everyone for path in one.python_path)
            ),
            "prefill": _joined(parent, parts, "prefill"),
            "decode": _joined(parent, parts, "decode"),
        }
    )


def _of_the_first(child: Profile) -> dict[Variant, DeclaredVariant]:
    """How much the child that decode loads from promises there; not that all of them start."""
    return {
        name: declared.model_copy(update={"support": "partly"})
        for name, declared in child.variants.items()
        if declared.support != "no"
    }


def _movement(parts: list[Profile]) -> tuple[Movement, ...]:
    """All records of the child that decode loads from; of the others, what prefill saves."""
    saved = [
        record.model_copy(update={"granularity": part.granularity})
        for part in parts[1:]
        for record in part.movement
        if record.side == "prefill"
    ]
    return (*parts[0].movement, *saved)


def _own_leases(child: Profile) -> Profile:
    prefix = f"{child.name}-"
    fields = child.model_dump(exclude={"path", "digest"})
    renewed = Profile.model_validate(renamed(fields, prefix))
    movement = tuple(
        record.model_copy(update={"files": prefix + record.files}) if record.files else record
        for record in renewed.movement
    )
    causality = renewed.causality
    if causality.dir:
        causality = causality.model_copy(update={"dir": prefix + causality.dir})
    daemons = tuple(
        daemon.model_copy(update={"ready_port": prefix + daemon.ready_port})
        for daemon in renewed.daemons
    )
    return renewed.model_copy(
        update={
            "movement": movement,
            "causality": causality,
            "daemons": daemons,
            "files": {prefix + name: text for name, text in renewed.files.items()},
            "python_path": tuple(_absolute(child, path) for path in child.python_path),
            "path": child.path,
            "digest": child.digest,
        }
    )


def _absolute(profile: Profile, path: str) -> str:
    return str((profile.path.parent / path).resolve())


def _joined(parent: Profile, parts: list[Profile], role: Role) -> Instance:
    """The parent's side, with every child's environment and arguments."""
    own = parent.instance(role)
    env: dict[str, str] = dict(own.env)
    for part in parts:
        for name, value in part.instance(role).env.items():
            if name not in own.env and env.setdefault(name, value) != value:
                raise UsageError(
                    f"profile {parent.path}: children: {part.name} sets {role}.env.{name} to "
                    f"{value!r}, and {env[name]!r} is set already; children of one connector "
                    "share a process, so give it in the parent's own env"
                )
    args = [*own.args, *(argument for part in parts for argument in part.instance(role).args)]
    update: dict[str, Any] = {"env": env, "args": tuple(args)}
    return own.model_copy(update=update)
