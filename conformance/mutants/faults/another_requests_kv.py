"""KV of another request, by a wrong handoff or a wrong place in the store."""

from __future__ import annotations

from typing import Any

from conformance.mutants.fault import UNRELATED, Fault, Finished


class AnotherRequestsKV(Fault):
    """Decode is sent to another prompt's KV: the handoff or the place in the store is wrong."""

    red = ("shared-prefix/cold/1 block", "shared-prefix/cold/2 blocks")
    green = UNRELATED

    def __init__(self) -> None:
        # By how many blocks they name: decode would notice that there are too few.
        self._before: dict[int, dict[str, Any]] = {}

    def handed(self, request: Any, answer: Finished) -> Finished:
        kept, params = answer
        if not params:
            return answer
        blocks = len(params["remote_block_ids"][0])
        wrong, self._before[blocks] = self._before.get(blocks), params
        return kept, wrong or params

    def folder(self, name: str, known: list[str]) -> str:
        return next((other for other in sorted(known) if other != name), name)
