"""Damage to stored KV between the legs: decode's answer must change, and nothing may crash.

The numbers stay and their places do not, so a server that reads them finds nothing odd but the
meaning. Three ways to reach a store: its files, its shared memory, or a command of the profile's.
"""

from __future__ import annotations

from typing import Protocol

from conformance.damage.command import CommandDamage
from conformance.damage.files import FileDamage
from conformance.damage.memory import MemoryDamage

__all__ = ["CommandDamage", "Damage", "FileDamage", "MemoryDamage"]


class Damage(Protocol):
    """Damages what was stored since the mark, and nothing older."""

    def mark(self) -> None:
        """Remember what is stored now."""

    def apply(self) -> int:
        """Damage what is new; how many pieces that were."""
