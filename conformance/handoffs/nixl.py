"""P is asked for a remote decode and answers with params that D is given unchanged (NIXL)."""

from __future__ import annotations

import uuid

from conformance.errors import HandoffBroken
from conformance.handoffs.base import Handoff, Headers, Params, Place


class ParamsFromPrefill(Handoff):
    """P is asked for a remote decode and returns params that D is given unchanged (NIXL)."""

    needed = ("do_remote_prefill", "remote_engine_id", "remote_block_ids", "remote_host")

    def prefill_params(self) -> Params | None:
        return {
            "do_remote_decode": True,
            "do_remote_prefill": False,
            "remote_engine_id": None,
            "remote_block_ids": None,
            "remote_host": None,
            "remote_port": None,
        }

    def decode_params(self, returned: Params | None) -> Params | None:
        if not returned:
            raise HandoffBroken(
                f"prefill returned kv_transfer_params={returned!r}, but should return "
                f"{', '.join(self.needed)}: decode would silently recompute the prompt"
            )
        missing = [key for key in self.needed if returned.get(key) is None]
        if missing:
            raise HandoffBroken(
                f"prefill returned kv_transfer_params without {', '.join(missing)} "
                f"(keys: {', '.join(sorted(returned))})"
            )
        return dict(returned)


class PushParamsFromPrefill(ParamsFromPrefill):
    """As with NIXL's pull, and both legs carry one request id, by which P finds D (NIXL push).

    D registers its blocks under its own request id, and P looks for that id, without the random
    end that vLLM adds, among its finished requests (vLLM 0.32.0, ``push_worker.py``). It does
    not look at ``remote_request_id``, so legs with different ids wait for each other in vain.
    """

    needed = ("do_remote_prefill", "remote_engine_id", "remote_request_id", "remote_host")
    same_request_id = True

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._request = uuid.uuid4().hex

    def headers(self) -> Headers:
        return {"X-Request-Id": self._request}
