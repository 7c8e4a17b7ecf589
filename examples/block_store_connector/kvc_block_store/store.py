"""Blocks as files: one per block and worker, there as a whole or not at all."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import safetensors.torch
import torch

Layers = dict[str, torch.Tensor]


class Store:
    """A folder that prefill and decode instances share. ``world``: workers of one instance."""

    def __init__(self, folder: Path, world: int) -> None:
        self._folder = folder
        self._world = world
        folder.mkdir(parents=True, exist_ok=True)

    def has(self, key: str) -> bool:
        """Whether every worker's part of a block is there."""
        return all(self._file(key, rank).exists() for rank in range(self._world))

    def read(self, key: str, rank: int) -> Layers:
        """One worker's part of a block. Raises ``OSError`` or ``SafetensorError``."""
        return safetensors.torch.load_file(self._file(key, rank))

    def write(self, key: str, rank: int, layers: Layers) -> None:
        """Put a part in its place in one step: readers and other writers never meet half of it.

        Who writes the same block at the same time writes the same bytes. Raises ``OSError``.
        """
        partial = self._folder / f"{key}.{rank}.{uuid.uuid4().hex}.partial"
        try:
            safetensors.torch.save_file(layers, partial)
            os.replace(partial, self._file(key, rank))
        finally:
            partial.unlink(missing_ok=True)

    def forget(self, key: str, rank: int) -> None:
        """Remove a part that cannot be read, so that the next prefill writes it anew."""
        self._file(key, rank).unlink(missing_ok=True)

    def _file(self, key: str, rank: int) -> Path:
        return self._folder / f"{key}.{rank}.safetensors"
