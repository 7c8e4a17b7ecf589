"""KV in a cache against what the model would have computed there."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from conformance.contracts.attention import kv_of
from conformance.contracts.memory import Memory


def wrong_positions(
    memory: Memory, tokens: Sequence[int], blocks: list[int], first: int
) -> dict[str, list[int]]:
    """Per layer those of the first positions whose KV is not exactly that of these tokens."""
    found = {}
    for number, layer in enumerate(memory.tensors):
        same = memory.read(layer, blocks, first) == kv_of(tokens, number)[:first]
        at = torch.nonzero(~same.flatten(1).all(1)).flatten().tolist()
        if at:
            found[layer] = at
    return found


def told(wrong: dict[str, list[int]], first: int) -> str:
    """The same in words; empty if nothing is wrong."""
    return "; ".join(
        f"{layer}: {len(at)} of {first} tokens differ, the first at position {at[0]}"
        for layer, at in wrong.items()
    )
