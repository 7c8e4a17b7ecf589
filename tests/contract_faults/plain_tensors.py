"""Stands in for torch, so that the buffer and pipe contracts are tried where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Plain:
    """A tensor as the contracts see it."""

    dtype: str
    shape: tuple[int, ...]
    values: tuple[float, ...]

    def to(self, dtype: str) -> Plain:
        return replace(self, dtype=dtype)


class PlainTensors:
    """See ``conformance.contracts.tensors.Tensors``."""

    dtypes = ("float32", "int64", "bool")

    def make(self, values: Sequence[float], shape: Sequence[int], dtype: str) -> Plain:
        return Plain(dtype, tuple(shape), tuple(values))

    def mask(self, values: Sequence[bool]) -> Plain:
        return Plain("bool", (len(values),), tuple(float(value) for value in values))

    def size(self, tensor: Plain) -> int:
        return 8 * len(tensor.values)

    def look(self, tensor: Plain) -> tuple[str, tuple[int, ...]]:
        return tensor.dtype, tensor.shape

    def same(self, one: Plain, other: Plain) -> bool:
        return one == other
