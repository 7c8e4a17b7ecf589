"""Which fault a running mutant has: the one whose name is in a file, so that servers stay up.

A pair takes a minute to start, a check a second or two, and there are dozens of faults.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from conformance.mutants.catalogue import NONE, fault_named
from conformance.mutants.fault import Fault

FILE = "fault"
SETTING = "mutant_folder"


class Switch:
    """What is on in one process; both sides of a connector in it share the fault's memory."""

    def __init__(self, folder: str) -> None:
        self._file = Path(folder) / FILE
        self._seen: tuple[int, int] | None = None
        self._fault: Fault = Fault()

    @property
    def fault(self) -> Fault:
        """The fault that is on now, new and without a memory if the file was written since."""
        now = self._stamp()
        if now != self._seen:
            self._seen, self._fault = now, self._made()
        return self._fault

    def _made(self) -> Fault:
        return fault_named(on(self._file.parent))()

    def _stamp(self) -> tuple[int, int] | None:
        with suppress(OSError):
            found = os.stat(self._file)
            return found.st_mtime_ns, found.st_ino
        return None


_SWITCHES: dict[str, Switch] = {}


def switch_at(folder: str) -> Switch:
    """The one of this process for a folder."""
    return _SWITCHES.setdefault(folder, Switch(folder))


def on(folder: Path) -> str:
    """The name of the fault that is on in a folder's servers."""
    with suppress(OSError):
        return (folder / FILE).read_text(encoding="utf-8").strip() or NONE
    return NONE


def turn(folder: Path, name: str) -> None:
    """Have mutants in a folder's servers take on a fault from their next call on."""
    fresh = folder / f"{FILE}.new"
    fresh.write_text(name, encoding="utf-8")
    fresh.replace(folder / FILE)
