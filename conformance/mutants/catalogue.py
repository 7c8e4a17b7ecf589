"""Every fault by name."""

from __future__ import annotations

import importlib
import pkgutil

from conformance.mutants import faults
from conformance.mutants.fault import Fault

NONE = "none"


def names() -> list[str]:
    """The names of all faults, in order of the alphabet."""
    found = pkgutil.iter_modules(faults.__path__)
    return sorted(module.name.replace("_", "-") for module in found)


def fault_named(name: str) -> type[Fault]:
    """A fault's class; that of a connector without one for ``none``.

    Raises :class:`KeyError` for a name that no fault has.
    """
    if name == NONE:
        return Fault
    if name not in names():
        raise KeyError(f"no fault is named {name!r}; known are {', '.join(names())}")
    module = importlib.import_module(f"{faults.__name__}.{name.replace('-', '_')}")
    own = [
        found
        for found in vars(module).values()
        if isinstance(found, type)
        and issubclass(found, Fault)
        and found.__module__ == module.__name__
    ]
    assert len(own) == 1, f"{module.__name__} should have one fault, and has {len(own)}"
    return own[0]


def title(name: str) -> str:
    """What is wrong with it, in a sentence."""
    return (fault_named(name).__doc__ or "").strip().splitlines()[0]
