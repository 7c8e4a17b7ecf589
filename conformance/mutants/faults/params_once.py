"""The first request gets a handoff, no other."""

from __future__ import annotations

from typing import Any

from conformance.mutants.fault import Fault, Finished


class ParamsOnce(Fault):
    """Prefill hands out params for the first request, and never again."""

    over = ("nixl",)
    red = ("transfer/completion", "transfer/chat")
    green = ("start/ready",)

    def __init__(self) -> None:
        self._spent = False

    def handed(self, request: Any, answer: Finished) -> Finished:
        spent, self._spent = self._spent, True
        return (answer[0], None) if spent else answer
