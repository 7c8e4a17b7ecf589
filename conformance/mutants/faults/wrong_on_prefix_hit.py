"""Right for a cold prompt, wrong where decode knows its beginning."""

from __future__ import annotations

from typing import Any

from conformance.mutants.fault import UNRELATED, Fault, Found
from conformance.mutants.landed import Landed


class WrongOnPrefixHit(Fault):
    """KV is zeros where decode has the prompt's first blocks in its own prefix cache."""

    red = ("scheduler/prefix/decode/one block",)
    green = (*UNRELATED, "transfer/completion", "length/3B")

    def __init__(self) -> None:
        self._hit: set[str] = set()

    def claims(self, request: Any, computed: int, found: Found) -> Found:
        if computed:
            self._hit.add(request.request_id)
        return found

    def landed(self, kv: Landed) -> None:
        if kv.request in self._hit:
            kv.change(lambda rows: rows * 0)
