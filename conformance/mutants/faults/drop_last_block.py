"""The last block never arrives."""

from __future__ import annotations

from typing import Any

from conformance.mutants.fault import UNRELATED, Fault
from conformance.mutants.landed import Landed


class DropLastBlock(Fault):
    """The last block of each transfer is left as zeros."""

    red = ("length/2B", "length/3B")
    green = UNRELATED

    def landed(self, kv: Landed) -> None:
        kept = (kv.tokens - 1) // kv.block_size * kv.block_size

        def without_last(rows: Any) -> Any:
            rows[kept:] = 0
            return rows

        kv.change(without_last)
