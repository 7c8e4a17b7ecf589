"""Which faults of the surroundings share a run: every run costs seconds, and none may hide another.

A fault is in effect on its own checks alone, so faults with different checks can share one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from conformance.mutants.harness_fault import HarnessFault

# In every run, without a fault: if it is not green, what is red there says nothing.
CANARY = "sampling/ignore-eos"


@dataclass
class HarnessRun:
    """One run of the command line. ``checks``: with no fault in effect beside those of others."""

    faults: list[HarnessFault] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)

    @property
    def options(self) -> tuple[str, ...]:
        """Words of the command line that its faults need."""
        return self.faults[0].options if self.faults else ()

    @property
    def connectors(self) -> list[str]:
        """Those that it starts."""
        return list(dict.fromkeys(fault.connector for fault in self.faults)) or ["nixl"]

    @property
    def tried(self) -> list[str]:
        """Every cell, each once."""
        own = [check for fault in self.faults for check in fault.checks]
        return list(dict.fromkeys([*own, *self.checks, CANARY]))

    def takes(self, fault: HarnessFault) -> bool:
        """Whether a fault can be in effect here without hiding another."""
        others = {check for each in self.faults for check in each.checks}
        return (
            not (fault.alone or any(each.alone for each in self.faults))
            and fault.options == self.options
            and others.isdisjoint(fault.checks)
        )


def runs(faults: Iterable[HarnessFault]) -> list[HarnessRun]:
    """As few as there can be, and one without any fault, for every check that is named."""
    found: list[HarnessRun] = []
    chosen = list(faults)
    for fault in chosen:
        place = next((run for run in found if run.takes(fault)), None)
        if place is None:
            place = HarnessRun()
            found.append(place)
        place.faults.append(fault)
    named = dict.fromkeys(check for fault in chosen for check in fault.checks)
    return [*found, HarnessRun(checks=list(named))] if chosen else []
