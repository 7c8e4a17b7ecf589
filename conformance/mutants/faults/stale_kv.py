"""KV of the request before."""

from __future__ import annotations

from typing import Any

from conformance.mutants.fault import UNRELATED, Fault
from conformance.mutants.landed import Landed


class StaleKV(Fault):
    """What arrives is the KV that arrived for the request before."""

    red = ("shared-prefix/cold/1 block", "transfer/chat", "usage/counters/unstreamed")
    green = UNRELATED

    def __init__(self) -> None:
        self._before: dict[str, Any] = {}

    def landed(self, kv: Landed) -> None:
        fresh = {layer: kv.rows(layer) for layer in kv.layers}
        for layer, rows in self._before.items():
            kv.put(layer, rows[: kv.tokens])
        self._before = fresh
