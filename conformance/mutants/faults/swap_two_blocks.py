"""Two blocks arrive in each other's place."""

from __future__ import annotations

from typing import Any

from conformance.mutants.fault import UNRELATED, Fault
from conformance.mutants.landed import Landed


class SwapTwoBlocks(Fault):
    """The first two blocks of each transfer arrive in each other's place."""

    red = ("length/3B", "scheduler/chunks/T+B-1")
    green = (*UNRELATED, "length/B")

    def landed(self, kv: Landed) -> None:
        size = kv.block_size

        def swapped(rows: Any) -> Any:
            if len(rows) >= 2 * size:
                rows[: 2 * size] = rows[: 2 * size].roll(size, dims=0)
            return rows

        kv.change(swapped)
