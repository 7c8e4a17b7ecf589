"""KV that arrived on decode, in its paged cache, where a fault can get at it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Landed:
    """The KV of one request's first tokens that are not in decode's own prefix cache.

    ``layers``: each layer's cache, ``[blocks, heads, tokens per block, content]``, K in the first
    half of the content and V in the second (vLLM 0.32.0, ``v1/worker/utils.py``). ``blocks``: where
    the tokens lie, in order. ``tokens``: how many there are.
    """

    request: str
    layers: dict[str, Any]
    blocks: list[int]
    tokens: int

    @property
    def block_size(self) -> int:
        """Tokens per block."""
        return int(next(iter(self.layers.values())).shape[2])

    def rows(self, layer: str) -> Any:
        """A copy of a layer's KV, ``[tokens, heads, content]``."""
        blocks, offsets = self._slots()
        return self.layers[layer][blocks, :, offsets].clone()

    def put(self, layer: str, rows: Any) -> None:
        """Overwrite the KV of as many tokens as there are rows."""
        blocks, offsets = self._slots()
        self.layers[layer][blocks[: len(rows)], :, offsets[: len(rows)]] = rows

    def change(self, changed: Callable[[Any], Any], *layers: str) -> None:
        """Overwrite the KV of some layers, or of all, with what a function makes of it."""
        for layer in layers or self.layers:
            self.put(layer, changed(self.rows(layer)))

    def _slots(self) -> tuple[list[int], list[int]]:
        size = self.block_size
        numbers = range(min(self.tokens, size * len(self.blocks)))
        return [self.blocks[n // size] for n in numbers], [n % size for n in numbers]
