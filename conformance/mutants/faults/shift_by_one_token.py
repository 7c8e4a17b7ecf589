"""Each token's KV lies one place too far."""

from __future__ import annotations

from conformance.mutants.fault import UNRELATED, Fault
from conformance.mutants.landed import Landed


class ShiftByOneToken(Fault):
    """The KV of each token arrives in the place of the next."""

    red = ("transfer/completion", "length/2B", "length/3B")
    green = UNRELATED

    def landed(self, kv: Landed) -> None:
        kv.change(lambda rows: rows.roll(1, dims=0))
