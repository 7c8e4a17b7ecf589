"""Right until decode has preempted a request."""

from __future__ import annotations

from typing import Any

from conformance.mutants.fault import Fault, Found
from conformance.mutants.landed import Landed


class WrongAfterPreemption(Fault):
    """Once a request that decode preempted is taken up again, KV that arrives is zeros."""

    red = ("scheduler/preemption/decode",)
    green = ("transfer/completion",)

    def __init__(self) -> None:
        self._confused = False

    def claims(self, request: Any, computed: int, found: Found) -> Found:
        self._confused = self._confused or request.num_preemptions > 0
        return found

    def landed(self, kv: Landed) -> None:
        if self._confused:
            kv.change(lambda rows: rows * 0)
