"""Right until a request has to be taken up again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.mutants.fault import Fault, Found


class WrongAfterPreemption(Fault):
    """A request that was preempted gets its tokens counted as transferred, and nothing loaded."""

    red = ("scheduler/preemption/decode",)
    green = ("transfer/completion",)

    def claims(self, request: Any, computed: int, found: Found) -> Found:
        if not request.num_preemptions:
            return found
        return max(request.num_tokens - 1 - computed, 0), False

    def allocated(self, request: Any, tell: Callable[[], None]) -> None:
        if not request.num_preemptions:
            tell()
