"""Decode computes every prompt itself, and its answers are right."""

from __future__ import annotations

from typing import Any

from conformance.mutants.fault import UNRELATED, Fault, Found


class RecomputeSilently(Fault):
    """Decode leaves the transferred KV alone and computes every prompt itself."""

    red = ("transfer/completion", "transfer/chat", "streaming/answer/chat", "length/2B")
    green = UNRELATED

    def claims(self, request: Any, computed: int, found: Found) -> Found:
        return 0, False
