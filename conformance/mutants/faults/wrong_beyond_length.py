"""Right for short prompts, wrong for long ones."""

from __future__ import annotations

from conformance.mutants.fault import UNRELATED, Fault
from conformance.mutants.landed import Landed

BLOCKS = 3


class WrongBeyondLength(Fault):
    """KV is zeros where more than three blocks of it arrive."""

    red = ("length/T+B+7", "scheduler/chunks/T+B-1")
    green = (*UNRELATED, "transfer/completion", "length/3B")

    def landed(self, kv: Landed) -> None:
        if kv.tokens > BLOCKS * kv.block_size:
            kv.change(lambda rows: rows * 0)
