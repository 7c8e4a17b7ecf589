"""Two blocks arrive in each other's place."""

from __future__ import annotations

from typing import Any

from conformance.mutants.fault import UNRELATED, Fault
from conformance.mutants.landed import Landed


class SwapTwoBlocks(Fault):
    """The first two blocks of each transfer arrive in each other's place.

    The request itself does not notice: attention is a sum over tokens, and their keys already know
    their positions. Whoever finds one of the blocks in decode's prefix cache later gets the other.
    """

    red = ("scheduler/prefix/transferred",)
    green = (*UNRELATED, "length/B")

    def landed(self, kv: Landed) -> None:
        size = kv.block_size

        def swapped(rows: Any) -> Any:
            if len(rows) >= 2 * size:
                rows[: 2 * size] = rows[: 2 * size].roll(size, dims=0)
            return rows

        kv.change(swapped)
