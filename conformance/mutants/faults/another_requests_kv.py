"""KV of another request, by a wrong handoff or a wrong place in the store."""

from __future__ import annotations

from typing import Any

from conformance.mutants.fault import UNRELATED, Fault, Finished


class AnotherRequestsKV(Fault):
    """Decode is sent to another prompt's KV: the handoff or the place in the store is wrong."""

    red = ("shared-prefix/cold/1 block", "shared-prefix/cold/2 blocks")
    green = UNRELATED

    def __init__(self) -> None:
        self._before: dict[str, Any] | None = None

    def handed(self, request: Any, answer: Finished) -> Finished:
        kept, params = answer
        wrong, self._before = self._before, params
        return kept, wrong or params

    def folder(self, name: str, known: list[str]) -> str:
        return next((other for other in sorted(known) if other != name), name)
