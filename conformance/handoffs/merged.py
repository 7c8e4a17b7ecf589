"""Several handoffs in one request: MultiConnector gives all children the same params."""

from __future__ import annotations

from conformance.handoffs.base import Handoff, Headers, Params, Place


class Merged(Handoff):
    """Each child's own handoff, in one request."""

    def __init__(self, place: Place, kinds: list[type[Handoff]]) -> None:
        super().__init__(place)
        self._parts = [kind(place) for kind in kinds]
        self.same_request_id = any(kind.same_request_id for kind in kinds)

    def headers(self) -> Headers:
        return {name: value for part in self._parts for name, value in part.headers().items()}

    def prefill_params(self) -> Params | None:
        return _merge([part.prefill_params() for part in self._parts])

    def decode_params(self, returned: Params | None) -> Params | None:
        return _merge([part.decode_params(returned) for part in self._parts])


def _merge(parts: list[Params | None]) -> Params | None:
    merged = {key: value for part in parts if part for key, value in part.items()}
    return merged or None
