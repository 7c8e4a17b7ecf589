"""Aborted requests are never let go."""

from __future__ import annotations

from typing import Any

from conformance.mutants.fault import UNRELATED, Fault, Finished


class SwallowAborts(Fault):
    """Decode's connector keeps the blocks of a request that was aborted."""

    ends_servers = True
    red = ("lifecycle/pause-abort",)
    green = (*UNRELATED, "transfer/completion")

    def freed(self, request: Any, answer: Finished) -> Finished:
        aborted = request.status.name == "FINISHED_ABORTED"
        return (True, answer[1]) if aborted else answer
