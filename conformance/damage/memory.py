"""Damages stored KV in a segment of shared memory, such as an LMCache server's pool."""

from __future__ import annotations

import mmap
from pathlib import Path

from conformance.damage.files import reversed_elements
from conformance.errors import EnvironmentProblem

PAGE = 4096
# Wide enough to hold whole elements of every KV dtype.
WORD = 8


class MemoryDamage:
    """Permutes every page of a segment that changed since the mark."""

    def __init__(self, segment: Path) -> None:
        self._segment = segment
        self._before: dict[int, int] = {}

    def mark(self) -> None:
        """Remember a hash of each page."""
        with self._open() as memory:
            self._before = {at: hash(page) for at, page in _pages(memory)}

    def apply(self) -> int:
        """Damage the changed pages; how many."""
        with self._open() as memory:
            changed = [at for at, page in _pages(memory) if self._before.get(at) != hash(page)]
            for at in changed:
                memory[at : at + PAGE] = reversed_elements(memory[at : at + PAGE], WORD)
        return len(changed)

    def _open(self) -> mmap.mmap:
        try:
            with self._segment.open("r+b") as file:
                return mmap.mmap(file.fileno(), 0)
        except OSError as problem:
            raise EnvironmentProblem(
                f"the store's memory {self._segment} cannot be opened ({problem.strerror}); "
                "causality.segment in the profile should name it"
            ) from problem


def _pages(memory: mmap.mmap) -> list[tuple[int, bytes]]:
    """Every page that holds anything, with its offset in bytes."""
    empty = bytes(PAGE)
    pages = ((at, memory[at : at + PAGE]) for at in range(0, len(memory) - PAGE + 1, PAGE))
    return [(at, page) for at, page in pages if page != empty]
