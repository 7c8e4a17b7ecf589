"""Everything arrives, as zeros."""

from __future__ import annotations

from conformance.mutants.fault import UNRELATED, Fault
from conformance.mutants.landed import Landed


class LoadZeros(Fault):
    """Every byte of KV that arrives is zero."""

    red = (
        "transfer/completion",
        "transfer/chat",
        "length/3B",
        "length/2B",
        "shared-prefix/cold/1 block",
    )
    green = UNRELATED

    def landed(self, kv: Landed) -> None:
        kv.change(lambda rows: rows * 0)
