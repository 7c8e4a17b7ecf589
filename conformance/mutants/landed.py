"""KV that arrived on decode, in its paged cache, where a fault can get at it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Landed:
    """The KV of one request's first tokens that are not in decode's own prefix cache.

    ``layers``: each layer's cache, ``[blocks, heads, tokens per block, content]``. ``blocks``:
    where the tokens lie, in order. ``tokens``: how many there are.

    Content is keys, then values, of a token; a CPU's kernels keep all keys of a block before all
    its values (vLLM 0.32.0, ``v1/attention/backends/cpu_attn.py``), and pack keys as they like
    within: there, a row of keys need not be a token's, a block of them is a block's.
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
        """A copy of a layer's KV, ``[tokens, heads, 2, head size]``: of the two, K is first."""
        blocks, offsets = self._slots()
        return self._planes(layer)[blocks, :, :, offsets].clone()

    def put(self, layer: str, rows: Any) -> None:
        """Overwrite the KV of as many tokens as there are rows."""
        blocks, offsets = self._slots()
        self._planes(layer)[blocks[: len(rows)], :, :, offsets[: len(rows)]] = rows

    def change(self, changed: Callable[[Any], Any], *layers: str) -> None:
        """Overwrite the KV of some layers, or of all, with what a function makes of it."""
        for layer in layers or self.layers:
            self.put(layer, changed(self.rows(layer)))

    def _planes(self, layer: str) -> Any:
        """The same memory as ``[blocks, heads, 2, tokens per block, head size]``."""
        cache = self.layers[layer]
        blocks, heads, tokens, content = cache.shape
        if cache.device.type == "cpu":
            return cache.view(blocks, heads, 2, tokens, content // 2)
        return cache.view(blocks, heads, tokens, 2, content // 2).transpose(2, 3)

    def _slots(self) -> tuple[list[int], list[int]]:
        size = self.block_size
        numbers = range(min(self.tokens, size * len(self.blocks)))
        return [self.blocks[n // size] for n in numbers], [n % size for n in numbers]
