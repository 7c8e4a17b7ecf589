"""P is asked for a remote decode and answers with params that D is given unchanged (NIXL)."""

from __future__ import annotations

from conformance.errors import HandoffBroken
from conformance.handoffs.base import Handoff, Params


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
    """As with NIXL's pull, but P writes the blocks, so it names none (NIXL push)."""

    needed = ("do_remote_prefill", "remote_engine_id", "remote_request_id", "remote_host")
