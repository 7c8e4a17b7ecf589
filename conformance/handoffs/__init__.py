"""Handoffs: how a prefill answer becomes the decode request. One small class each.

A profile names one of :data:`HANDOFFS`, a class of its own as ``package.module:Class``, or an
entry point of the group ``kv_conformance.handoffs``.
"""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata
from pathlib import Path

from conformance.errors import UsageError
from conformance.handoffs.base import NOTHING, Handed, Handoff, Headers, Params, Place
from conformance.handoffs.lmcache_disagg import LMCacheDisagg
from conformance.handoffs.merged import Merged
from conformance.handoffs.mooncake import MooncakeBootstrap
from conformance.handoffs.moriio import (
    MoRIIORead,
    MoRIIOReadByKeys,
    MoRIIOWrite,
    MoRIIOWriteByKeys,
)
from conformance.handoffs.nixl import ParamsFromPrefill, PushParamsFromPrefill
from conformance.handoffs.tier_p2p import TierP2P

__all__ = [
    "HANDOFFS",
    "NOTHING",
    "Handed",
    "Handoff",
    "Headers",
    "Maker",
    "Params",
    "Place",
    "check_handoff",
    "handoff_named",
    "may_go_at_once",
    "meaning_of",
    "merged_name",
]

ENTRY_POINTS = "kv_conformance.handoffs"
HANDOFFS: dict[str, type[Handoff]] = {
    "none": Handoff,
    "params_from_prefill": ParamsFromPrefill,
    "push_params_from_prefill": PushParamsFromPrefill,
    "mooncake_bootstrap": MooncakeBootstrap,
    "moriio_read": MoRIIORead,
    "moriio_read_by_keys": MoRIIOReadByKeys,
    "moriio_write": MoRIIOWrite,
    "moriio_write_by_keys": MoRIIOWriteByKeys,
    "tier_p2p": TierP2P,
    "lmcache_disagg": LMCacheDisagg,
}
Maker = Callable[[Place], Handoff]


def handoff_named(name: str, python_path: tuple[Path, ...] = ()) -> Maker:
    """Makes a handoff of the kind a profile names, for one request.

    ``python_path``: folders in which a class of the profile's own is looked for too. Raises
    :class:`UsageError` for an unknown name.
    """
    kinds = [_kind(part, python_path) for part in name.split("+")]
    return kinds[0] if len(kinds) == 1 else partial(Merged, kinds=kinds)


def may_go_at_once(name: str, python_path: tuple[Path, ...] = ()) -> bool:
    """Whether decode can be asked before prefill has answered, for every part of a handoff."""
    kinds = [_kind(part, python_path) for part in name.split("+")]
    return all(kind.at_once or kind.may_go_at_once for kind in kinds)


def merged_name(names: list[str]) -> str:
    """The handoff of a connector whose children have these."""
    return "+".join(dict.fromkeys(name for name in names if name != "none")) or "none"


def meaning_of(name: str) -> str:
    """One sentence for readers of a report."""
    docs = [
        (HANDOFFS[part].__doc__ or "") if part in HANDOFFS else part for part in name.split("+")
    ]
    return " ".join(doc.split("\n")[0] for doc in docs)


def check_handoff(name: str, python_path: tuple[Path, ...] = ()) -> Iterator[tuple[str, str]]:
    """What is wrong with a profile's ``handoff``, as (path in the document, what and the fix)."""
    try:
        handoff_named(name, python_path)
    except UsageError as problem:
        yield "handoff", str(problem)


def _kind(name: str, python_path: tuple[Path, ...]) -> type[Handoff]:
    if name in HANDOFFS:
        return HANDOFFS[name]
    if ":" in name:
        return _imported(name, python_path)
    for entry in metadata.entry_points(group=ENTRY_POINTS, name=name):
        return _must_be_handoff(name, entry.load())
    near = difflib.get_close_matches(name, HANDOFFS, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise UsageError(
        f"{name!r} is unknown; {hint}use one of: {', '.join(sorted(HANDOFFS))}; a class of your "
        f"own as 'package.module:Class'; or an entry point of the group {ENTRY_POINTS}"
    )


def _imported(name: str, python_path: tuple[Path, ...]) -> type[Handoff]:
    module, _, attribute = name.partition(":")
    for folder in python_path:
        if str(folder) not in sys.path:
            sys.path.append(str(folder))
    try:
        return _must_be_handoff(name, getattr(importlib.import_module(module), attribute))
    except (ImportError, AttributeError) as problem:
        raise UsageError(
            f"{name!r} cannot be imported ({problem}); install its package beside the suite, or "
            "name its folder in python_path"
        ) from problem


def _must_be_handoff(name: str, found: object) -> type[Handoff]:
    if isinstance(found, type) and issubclass(found, Handoff):
        return found
    raise UsageError(
        f"{name!r} is {found!r}, but should be a subclass of conformance.handoffs.Handoff"
    )
