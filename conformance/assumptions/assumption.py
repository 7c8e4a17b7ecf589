"""One thing that is taken for granted, and the register of all."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from conformance.assumptions.plain import Plain

# In the order in which they are tried: what others rest on comes first.
AREAS = (
    *("server", "errors", "token_ids", "scores", "counters", "sources", "answers"),
    *("streaming", "dialects", "developer"),
)
# What every request rests on, those whose answers can be compared, and those that are counted.
ASKS = ("server/tokenize",)
COMPARED = (*ASKS, "token-ids/completions", "scores/completions")
COUNTS = (*COMPARED, "counters/exported", "counters/finished")

# Files of vLLM 0.32.0 that more than one area is read from.
COMPLETIONS = "entrypoints/openai/completion/serving.py"
CHAT = "entrypoints/openai/chat_completion/serving.py"

Look = Callable[[Plain], object]


@dataclass(frozen=True)
class Assumption:
    """One of them.

    ``says``: one sentence; ``source``: the file of vLLM 0.32.0 that it is read from;
    ``relied_on``: files of the suite below ``conformance/``. ``look`` gives what was seen and
    raises :class:`CheckFailed` where it does not hold, :class:`NotHere` where it cannot be tried.
    ``needs``: ids of others without which it says nothing. ``intrusive``: it pauses the server or
    empties its caches.
    """

    id: str
    says: str
    source: str
    relied_on: tuple[str, ...]
    look: Look
    needs: tuple[str, ...] = ()
    intrusive: bool = False


_KNOWN: dict[str, Assumption] = {}


def assume(
    id: str,
    *,
    source: str,
    relied_on: tuple[str, ...],
    needs: tuple[str, ...] = ASKS,
    intrusive: bool = False,
) -> Callable[[Look], Look]:
    """Register a function as an assumption. Its docstring says what is taken for granted."""

    def register(look: Look) -> Look:
        says = " ".join((look.__doc__ or "").split())
        if not says:
            raise TypeError(f"assumption {id} needs a docstring: it says what is taken for granted")
        if id in _KNOWN and _KNOWN[id].look.__module__ != look.__module__:
            raise TypeError(f"assumption {id} exists twice")
        _KNOWN[id] = Assumption(id, says, source, relied_on, look, needs, intrusive)
        return look

    return register


def all_assumptions() -> list[Assumption]:
    """Every one, in the order in which they are tried."""
    modules = [f"conformance.assumptions.{area}" for area in AREAS]
    for module in modules:
        importlib.import_module(module)
    return sorted(_KNOWN.values(), key=lambda known: modules.index(known.look.__module__))
