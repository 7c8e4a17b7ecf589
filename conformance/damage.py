"""Damages stored KV so that a server can still read it: the numbers stay, their places do not."""

from __future__ import annotations

import json
from pathlib import Path

_WIDTH = {"F64": 8, "F32": 4, "BF16": 2, "F16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "U8": 1, "I8": 1}


def permute_elements(path: Path) -> None:
    """Reverse the order of the elements of every tensor in a safetensors file, in place.

    Shapes, dtypes and value ranges stay, so nothing but the meaning is wrong: a server that
    reads the file must answer differently, and must not crash.
    """
    raw = bytearray(path.read_bytes())
    start = 8 + int.from_bytes(raw[:8], "little")
    for tensor in _tensors(json.loads(raw[8:start])):
        first, last = (start + offset for offset in tensor["data_offsets"])
        raw[first:last] = _reversed(bytes(raw[first:last]), _WIDTH[tensor["dtype"]])
    path.write_bytes(bytes(raw))


def _tensors(header: dict[str, dict]) -> list[dict]:  # type: ignore[type-arg]
    return [entry for name, entry in header.items() if name != "__metadata__"]


def _reversed(data: bytes, width: int) -> bytes:
    elements = [data[at : at + width] for at in range(0, len(data), width)]
    return b"".join(reversed(elements))
