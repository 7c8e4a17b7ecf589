"""Decode never gives blocks back."""

from __future__ import annotations

from typing import Any

from conformance.mutants.fault import UNRELATED, Fault, Finished


class LeakBlocks(Fault):
    """Decode keeps the blocks of every request for ever."""

    ends_servers = True
    red = ("transfer/nothing-held",)
    green = (*UNRELATED, "transfer/completion")

    def freed(self, request: Any, answer: Finished) -> Finished:
        return True, answer[1]
