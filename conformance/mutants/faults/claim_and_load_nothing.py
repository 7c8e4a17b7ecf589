"""Counted as transferred, and never loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.mutants.fault import UNRELATED, Fault, Found


class ClaimAndLoadNothing(Fault):
    """Decode's tokens count as transferred, and nothing is loaded for them."""

    red = ("transfer/completion", "transfer/chat", "length/2B")
    green = UNRELATED

    def claims(self, request: Any, computed: int, found: Found) -> Found:
        brought = min(found[0] or 0, request.num_prompt_tokens - 1 - computed)
        return brought, False

    def allocated(self, request: Any, tell: Callable[[], None]) -> None:
        pass
