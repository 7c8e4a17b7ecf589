"""One bit of one value of one layer is wrong."""

from __future__ import annotations

from typing import Any

from conformance.mutants.fault import UNRELATED, Fault
from conformance.mutants.landed import Landed

VALUES = 1


class FlipOneBit(Fault):
    """One bit is flipped in one layer: the highest of the exponent, of one value of one token.

    It makes a value below 2 huge, so the first token with such a one is taken. Lower bits change
    less than the computation's own rounding does, and nobody could tell.
    """

    red = ("transfer/completion",)
    green = UNRELATED

    def landed(self, kv: Landed) -> None:
        import torch

        def flipped(rows: Any) -> Any:
            bits = rows.view(torch.int16 if rows.element_size() == 2 else torch.int32)
            highest = 1 << (8 * rows.element_size() - 2)
            small = (bits[:, 0, VALUES, 0] & highest == 0).nonzero()
            bits[int(small[0]) if len(small) else 0, 0, VALUES, 0] ^= highest
            return rows

        kv.change(flipped, next(iter(kv.layers)))
