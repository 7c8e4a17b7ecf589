"""Of a prompt prefilled in chunks, the first."""

from __future__ import annotations

from typing import Any

from conformance.mutants.fault import UNRELATED, Fault
from conformance.mutants.landed import Landed

# Tokens that one scheduler step of the suite's servers computes.
CHUNK = 512


class FirstChunkOnly(Fault):
    """Of a prompt that prefill computes in several steps, only the first step's KV arrives."""

    red = ("length/T+B+7", "scheduler/chunks/2T+B+3")
    green = (*UNRELATED, "transfer/completion", "length/3B")

    def landed(self, kv: Landed) -> None:
        def cut(rows: Any) -> Any:
            rows[CHUNK:] = 0
            return rows

        kv.change(cut)
