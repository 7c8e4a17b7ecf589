"""Right for one request, wrong for two."""

from __future__ import annotations

from typing import Any

from conformance.mutants.fault import UNRELATED, Fault, Finished, Found
from conformance.mutants.landed import Landed


class WrongUnderConcurrency(Fault):
    """KV is zeros whenever decode has more than one request under way."""

    red = ("scheduler/crowd",)
    green = (*UNRELATED, "transfer/completion", "length/2B")

    def __init__(self) -> None:
        self._under_way: set[str] = set()

    def claims(self, request: Any, computed: int, found: Found) -> Found:
        self._under_way.add(request.request_id)
        return found

    def freed(self, request: Any, answer: Finished) -> Finished:
        self._under_way.discard(request.request_id)
        return answer

    def landed(self, kv: Landed) -> None:
        if len(self._under_way) > 1:
            kv.change(lambda rows: rows * 0)
