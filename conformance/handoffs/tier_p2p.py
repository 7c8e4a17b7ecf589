"""OffloadingConnector's p2p tier: one id in both legs, and prefill's side channel for decode."""

from __future__ import annotations

import uuid

from conformance.handoffs.base import Handoff, Params, Place


class TierP2P(Handoff):
    """The client makes an id for both legs and tells decode where prefill's side channel is.

    P returns no params, and decode may ask first: prefill then serves each block as it is stored
    (vLLM 0.32.0, ``v1/kv_offload/tiering/p2p/manager.py``). A leg whose params lack a key is not
    refused; it silently computes or keeps its KV for itself.
    """

    may_go_at_once = True

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._id = f"kv-{uuid.uuid4()}"

    def prefill_params(self) -> Params | None:
        return {"remote_decoder": {"kv_request_id": self._id}}

    def decode_params(self, returned: Params | None) -> Params | None:  # noqa: ARG002
        prefiller = {
            "kv_request_id": self._id,
            "remote_host": self.place.host,
            "remote_port": self.place.port("prefill_p2p"),
        }
        return {"remote_prefiller": prefiller}
