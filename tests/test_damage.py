"""Damage to stored KV: the same file to a loader, other numbers to a model."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from conformance.damage.files import permute_elements

FORMATS = {"F64": "d", "F32": "f", "F16": "e", "BF16": "H", "U8": "B", "I8": "b", "F8_E4M3": "B"}


def store(file: Path, tensors: dict[str, tuple[str, list[float]]]) -> bytes:
    """A safetensors file of flat tensors, written by hand."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, (dtype, values) in tensors.items():
        packed = struct.pack(f"<{len(values)}{FORMATS[dtype]}", *values)
        offsets = [len(data), len(data) + len(packed)]
        header[name] = {"dtype": dtype, "shape": [len(values)], "data_offsets": offsets}
        data += packed
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return file.read_bytes()


def read(file: Path) -> dict[str, list[float]]:
    raw = file.read_bytes()
    start = 8 + struct.unpack("<Q", raw[:8])[0]
    found = {}
    for name, entry in json.loads(raw[8:start]).items():
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            values = struct.iter_unpack(f"<{FORMATS[entry['dtype']]}", raw[start:][first:last])
            found[name] = [value for (value,) in values]
    return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "layer.safetensors"


@pytest.mark.parametrize("dtype", sorted(FORMATS))
def test_the_elements_are_reversed_and_stay_whole(file: Path, dtype: str) -> None:
    store(file, {"kv": (dtype, [1, 2, 3, 4, 5])})
    permute_elements(file)
    assert read(file) == {"kv": [5, 4, 3, 2, 1]}


def test_each_tensor_is_damaged_within_its_own_bytes(file: Path) -> None:
    store(file, {"k": ("F32", [1.5, 2.5, 3.5]), "v": ("F16", [9, 8]), "empty": ("F32", [])})
    permute_elements(file)
    assert read(file) == {"k": [3.5, 2.5, 1.5], "v": [8, 9], "empty": []}


def test_size_and_header_stay(file: Path) -> None:
    before = store(file, {"k": ("F32", [1, 2, 3]), "v": ("F32", [4, 5, 6])})
    permute_elements(file)
    after = file.read_bytes()
    start = len(before) - 24
    assert len(after) == len(before)
    assert after[:start] == before[:start]
    assert after[start:] != before[start:]


def test_twice_is_the_original(file: Path) -> None:
    before = store(file, {"k": ("BF16", [7, 1, 65535]), "v": ("F64", [0.25, -1e300])})
    permute_elements(file)
    permute_elements(file)
    assert file.read_bytes() == before


@pytest.mark.parametrize("dtype", ["f", "e", "b"])
def test_a_file_of_bare_elements_is_damaged_and_its_elements_stay_whole(
    tmp_path: Path, dtype: str
) -> None:
    block = tmp_path / "0a1b.bin"
    block.write_bytes(struct.pack(f"<16{dtype}", *range(16)))
    permute_elements(block)
    after = struct.unpack(f"<16{dtype}", block.read_bytes())
    assert sorted(after) == list(range(16))
    assert after[-1] != 15
