"""Handoffs: how a prefill answer becomes the decode request. One small class each."""

from __future__ import annotations

from typing import Any, Protocol

from conformance.errors import HandoffBroken

Params = dict[str, Any]


class Handoff(Protocol):
    """What a router has to do between the two legs of a request."""

    def prefill_params(self) -> Params | None:
        """``kv_transfer_params`` of the prefill request; ``None`` sends none."""

    def decode_params(self, returned: Params | None) -> Params | None:
        """``kv_transfer_params`` of the decode request, from those P returned.

        Raises :class:`HandoffBroken` when P did not return what the connector promises:
        going on without it would make decode recompute the prompt and answer rightly.
        """


class NoHandoff:
    """Nothing to hand over: decode finds the KV by the prompt itself (shared stores)."""

    def prefill_params(self) -> Params | None:
        return None

    def decode_params(self, returned: Params | None) -> Params | None:  # noqa: ARG002
        return None


class ParamsFromPrefill:
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


HANDOFFS: dict[str, type[Handoff]] = {
    "none": NoHandoff,
    "params_from_prefill": ParamsFromPrefill,
}


def handoff_named(name: str) -> Handoff:
    """A fresh handoff of the kind a profile names."""
    return HANDOFFS[name]()
