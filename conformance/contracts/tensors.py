"""The tensors that go through buffers and pipes: made, compared and told apart in one place.

The contracts need little of them, so whatever has these five operations will do: torch here, a
stand-in where torch is not installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class Tensors(Protocol):
    """What the contracts ask of a tensor library. ``dtype`` goes by torch's name."""

    @property
    def dtypes(self) -> Sequence[str]:
        """The dtypes to try."""

    def make(self, values: Sequence[float], shape: Sequence[int], dtype: str) -> Any:
        """A tensor of these values, row by row."""

    def mask(self, values: Sequence[bool]) -> Any:
        """A tensor of truth values, one dimension."""

    def size(self, tensor: Any) -> int:
        """Its bytes."""

    def look(self, tensor: Any) -> tuple[str, tuple[int, ...]]:
        """Its dtype and shape."""

    def same(self, one: Any, other: Any) -> bool:
        """Whether dtype, shape and every bit agree."""


class TorchTensors:
    """torch on the CPU."""

    dtypes = ("float32", "float16", "bfloat16", "int64", "int32", "uint8", "bool")

    def make(self, values: Sequence[float], shape: Sequence[int], dtype: str) -> Any:
        """See :class:`Tensors`."""
        import torch

        return torch.tensor(list(values)).reshape(tuple(shape)).to(getattr(torch, dtype))

    def mask(self, values: Sequence[bool]) -> Any:
        """See :class:`Tensors`."""
        return self.make([float(value) for value in values], [len(values)], "bool")

    def size(self, tensor: Any) -> int:
        """See :class:`Tensors`."""
        return int(tensor.element_size() * tensor.numel())

    def look(self, tensor: Any) -> tuple[str, tuple[int, ...]]:
        """See :class:`Tensors`."""
        return str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape)

    def same(self, one: Any, other: Any) -> bool:
        """See :class:`Tensors`."""
        return self.look(one) == self.look(other) and self._bytes(one) == self._bytes(other)

    def _bytes(self, tensor: Any) -> bytes:
        import torch

        flat = tensor.detach().cpu().contiguous().reshape(-1)
        return bytes(flat.view(torch.uint8).numpy().tobytes()) if flat.numel() else b""
