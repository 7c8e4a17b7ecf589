"""A fault of the surroundings: of a server, a gateway, a page or a clock, and of no connector."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HarnessFault:
    """One thing that is wrong around a connector, and the checks that have to see it.

    ``fault``: in the words of ``conformance/scripted/faults.py``, semicolons between the parts; a
    part without ``@CHECK`` is in effect on every check that is named here. ``red``: cells that must
    end fail, error or degraded; ``green``: cells that must pass all the same. ``options``: words of
    the command line that it needs. ``alone``: it cannot be tied to checks, so no other fault may
    be in effect in the same run.
    """

    name: str
    title: str
    fault: str
    red: tuple[str, ...]
    green: tuple[str, ...] = ()
    connector: str = "nixl"
    options: tuple[str, ...] = ()
    alone: bool = False

    @property
    def checks(self) -> tuple[str, ...]:
        """All cells that it is tried on."""
        return (*self.red, *self.green)

    @property
    def tied(self) -> str:
        """The fault as it is given to the servers of a run."""
        parts = self.fault.split(";")
        if self.alone:
            return ";".join(parts)
        free = [part for part in parts if "@" not in part]
        bound = [part for part in parts if "@" in part]
        return ";".join([*(f"{part}@{check}" for part in free for check in self.checks), *bound])
