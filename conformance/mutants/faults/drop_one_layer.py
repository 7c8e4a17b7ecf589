"""One layer never arrives."""

from __future__ import annotations

from conformance.mutants.fault import UNRELATED, Fault
from conformance.mutants.landed import Landed


class DropOneLayer(Fault):
    """One layer of each transfer, the last, is left as zeros."""

    red = ("transfer/completion", "length/2B")
    green = UNRELATED

    def landed(self, kv: Landed) -> None:
        kv.change(lambda rows: rows * 0, list(kv.layers)[-1])
