"""Plain copies of arbitrary objects, so that two states can be compared for equality."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

_ATOMS = (str, bytes, int, float, complex, bool, type(None), type)


def plain(value: Any, _seen: frozenset[int] = frozenset()) -> Any:
    """Nested tuples that are equal exactly if the values are, whatever their classes compare.

    Tensors become dtype, shape and bytes; objects their class name and attributes; a function
    its name; a reference back to an enclosing object the word ``<cycle>``.
    """
    if isinstance(value, _ATOMS):
        return value
    if id(value) in _seen:
        return "<cycle>"
    seen = _seen | {id(value)}
    if isinstance(value, torch.Tensor):
        raw = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        return ("tensor", str(value.dtype), tuple(value.shape), raw.numpy().tobytes())
    if isinstance(value, Mapping):
        pairs = [(plain(key, seen), plain(item, seen)) for key, item in value.items()]
        return ("mapping", *sorted(pairs, key=repr))
    if isinstance(value, set | frozenset):
        return ("set", *sorted((plain(item, seen) for item in value), key=repr))
    if isinstance(value, list | tuple) or type(value).__name__ == "deque":
        return ("sequence", *(plain(item, seen) for item in value))
    if callable(value) and not hasattr(value, "__dict__"):
        return ("callable", getattr(value, "__qualname__", type(value).__name__))
    return (type(value).__qualname__, plain(_attributes(value), seen))


def _attributes(value: Any) -> dict[str, Any]:
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    named = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    named |= getattr(value, "__dict__", {})
    return named or {"repr": repr(value)}


def differences(before: Any, after: Any, where: str = "") -> list[str]:
    """The attribute paths at which two :func:`plain` copies differ."""
    if before == after:
        return []
    if _is_object(before) and _is_object(after) and before[0] == after[0]:
        old, new = (dict(copy[1][1:]) for copy in (before, after))
        return [
            path
            for name in sorted({*old, *new}, key=repr)
            for path in differences(old.get(name), new.get(name), f"{where}.{name}".lstrip("."))
        ]
    return [where or "(the whole)"]


def _is_object(copy: Any) -> bool:
    return (
        isinstance(copy, tuple)
        and len(copy) == 2
        and isinstance(copy[1], tuple)
        and copy[1][:1] == ("mapping",)
        and copy[0] not in ("mapping", "sequence", "set", "tensor")
    )
