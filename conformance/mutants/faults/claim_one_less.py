"""One token less is said to be there than is."""

from __future__ import annotations

from typing import Any

from conformance.mutants.fault import UNRELATED, Fault, Found


class ClaimOneLess(Fault):
    """Decode is told of one token less than arrives, and computes it again."""

    red = ("transfer/completion",)
    green = UNRELATED

    def claims(self, request: Any, computed: int, found: Found) -> Found:
        tokens, later = found
        return (tokens - 1 if tokens and tokens > 1 else tokens), later
