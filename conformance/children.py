"""A pair as one child of MultiConnector sees it, so that each child can be proven by itself."""

from __future__ import annotations

from dataclasses import replace

from conformance.handoffs import handoff_named
from conformance.pair import Pair
from conformance.profile import Profile


def reachable(profile: Profile) -> tuple[str, ...]:
    """The children that decode can be made to load from, by name; none for a single connector.

    A store that finds KV by the prompt alone answers before any child after it, whatever is
    handed over, so of those only what they save can be seen.
    """
    stores = [number for number, part in enumerate(profile.parts) if part.handoff == "none"]
    last = stores[0] if stores else len(profile.parts)
    return tuple(part.name for part in profile.parts[: last + 1])


def as_child(pair: Pair, name: str) -> Pair:
    """The pair, asked with one child's handoff alone and judged by that child's profile.

    MultiConnector loads from the first child that has tokens (vLLM 0.32.0,
    ``multi_connector.py``), so a child is reached when those before it are handed nothing.
    """
    part = next(part for part in pair.profile.parts if part.name == name)
    return replace(
        pair,
        profile=part,
        handoff=handoff_named(part.handoff, part.python_folders()),
        damage=pair.damage_of_child.get(name),
    )
