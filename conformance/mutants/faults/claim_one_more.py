"""One token more is said to be there than is."""

from __future__ import annotations

from typing import Any

from conformance.mutants.fault import Fault, Found


class ClaimOneMore(Fault):
    """Decode is told of one token more than arrives."""

    ends_servers = True
    red = ("transfer/completion",)
    green = ("start/ready",)

    def claims(self, request: Any, computed: int, found: Found) -> Found:
        tokens, later = found
        return (tokens + 1 if tokens else tokens), later
