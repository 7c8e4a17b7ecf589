"""K lies where V should, and V where K should."""

from __future__ import annotations

from conformance.mutants.fault import UNRELATED, Fault
from conformance.mutants.landed import Landed


class SwapKeysAndValues(Fault):
    """Keys arrive where the values belong, and values where the keys do."""

    red = ("transfer/completion", "length/2B")
    green = UNRELATED

    def landed(self, kv: Landed) -> None:
        kv.change(lambda rows: rows.roll(1, dims=2))
