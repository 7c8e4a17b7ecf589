"""Damages stored KV in files so that a server can still read it."""

from __future__ import annotations

import json
from pathlib import Path

_WIDTH = {"F64": 8, "F32": 4, "BF16": 2, "F16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "U8": 1, "I8": 1}
# Wide enough to hold whole elements of every KV dtype.
WORD = 8


class FileDamage:
    """Permutes every file that appeared under a folder since the mark."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._before: set[Path] = set()

    def mark(self) -> None:
        """Remember the files."""
        self._before = self._files()

    def apply(self) -> int:
        """Damage the new ones; how many."""
        new = sorted(self._files() - self._before)
        for path in new:
            permute_elements(path)
        return len(new)

    def _files(self) -> set[Path]:
        return {path for path in self._folder.rglob("*") if path.is_file()}


def permute_elements(path: Path) -> None:
    """Reverse the order of the elements of every tensor in a file, in place.

    Shapes, dtypes and value ranges stay, so nothing but the meaning is wrong: a server that
    reads the file must answer differently, and must not crash. A file that is not safetensors,
    such as a block of vLLM's fs tier, is nothing but elements.
    """
    raw = bytearray(path.read_bytes())
    if path.suffix != ".safetensors":
        path.write_bytes(reversed_elements(bytes(raw), WORD))
        return
    start = 8 + int.from_bytes(raw[:8], "little")
    for tensor in _tensors(json.loads(raw[8:start])):
        first, last = (start + offset for offset in tensor["data_offsets"])
        raw[first:last] = reversed_elements(bytes(raw[first:last]), _WIDTH[tensor["dtype"]])
    path.write_bytes(bytes(raw))


def reversed_elements(data: bytes, width: int) -> bytes:
    """The same elements of ``width`` bytes, last first."""
    elements = [data[at : at + width] for at in range(0, len(data), width)]
    return b"".join(reversed(elements))


def _tensors(header: dict[str, dict]) -> list[dict]:  # type: ignore[type-arg]
    return [entry for name, entry in header.items() if name != "__metadata__"]
