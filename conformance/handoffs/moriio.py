"""MoRIIO: one id and both instances' ZMQ addresses in each leg, in the request id or as keys.

Facts from vLLM 0.32.0, ``moriio_connector.py`` and ``moriio_common.py``. ``X-Request-Id`` is what
vLLM's router sends; keys are what a router sends that leaves request ids alone (llm-d).
"""

from __future__ import annotations

import uuid
from typing import ClassVar, Literal

from conformance.errors import HandoffBroken
from conformance.handoffs.base import Handoff, Headers, Params, Place
from conformance.handoffs.moriio_registry import Peer, peer

Mode = Literal["READ", "WRITE"]


class _MoRIIO(Handoff):
    """What both modes share. ``addresses_in_id``: the request id names both instances."""

    mode: ClassVar[Mode]
    addresses_in_id: ClassVar[bool] = True

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._number = uuid.uuid4().hex
        self._transfer = f"tx-{uuid.uuid4()}"

    def headers(self) -> Headers:
        if not self.addresses_in_id:
            return {"X-Request-Id": self._number}
        prefill, decode = self._peer("prefill").address, self._peer("decode").address
        request = f"___prefill_addr_{prefill}___decode_addr_{decode}_{self._number}"
        return {"X-Request-Id": request}

    def prefill_params(self) -> Params | None:
        decode = self._peer("decode")
        return {
            "do_remote_decode": True,
            "do_remote_prefill": False,
            "transfer_id": self._transfer,
            "remote_engine_id": None,
            "remote_block_ids": None,
            "remote_dp_size": decode.dp_size,
            "remote_tp_size": decode.tp_size,
            **self._keys(decode),
        }

    def _keys(self, remote: Peer) -> Params:
        return {} if self.addresses_in_id else remote.keys()

    def _peer(self, side: Literal["prefill", "decode"]) -> Peer:
        return peer(self.place, side, self.mode)


class MoRIIORead(_MoRIIO):
    """P returns its blocks, and D, given them and the same request id, reads them (MoRIIO read).

    A prefill that ends by a stop token returns nothing, and a decode without blocks still counts
    all but one token as transferred, and answers from KV that nobody wrote.
    """

    mode = "READ"
    needed = ("do_remote_prefill", "remote_engine_id", "remote_block_ids", "transfer_id")

    def decode_params(self, returned: Params | None) -> Params | None:
        missing = [key for key in self._needed() if not (returned or {}).get(key)]
        if not returned or missing:
            raise HandoffBroken(
                f"prefill returned kv_transfer_params={returned!r}, but should return "
                f"{', '.join(missing)}: decode would answer from blocks that nobody wrote"
            )
        if returned["transfer_id"] != self._transfer:
            raise HandoffBroken(
                f"prefill returned transfer_id={returned['transfer_id']!r}, but was asked with "
                f"{self._transfer!r}: decode would be given another request's KV"
            )
        return dict(returned)

    def _needed(self) -> tuple[str, ...]:
        keys = ("remote_host", "remote_handshake_port", "remote_notify_port")
        return self.needed if self.addresses_in_id else (*self.needed, *keys)


class MoRIIOReadByKeys(MoRIIORead):
    """As MoRIIO read, with the addresses as keys that P returns, not in the request id."""

    addresses_in_id = False


class MoRIIOWrite(_MoRIIO):
    """Both legs go at once with one id; D announces its blocks and P writes them (MoRIIO write)."""

    mode = "WRITE"
    at_once = True
    may_go_at_once = True

    def decode_params(self, returned: Params | None) -> Params | None:  # noqa: ARG002
        prefill = self._peer("prefill")
        return {
            "do_remote_decode": False,
            "do_remote_prefill": True,
            "transfer_id": self._transfer,
            "remote_engine_id": None,
            "remote_block_ids": None,
            "remote_dp_size": prefill.dp_size,
            "remote_tp_size": prefill.tp_size,
            **self._keys(prefill),
        }


class MoRIIOWriteByKeys(MoRIIOWrite):
    """As MoRIIO write, with the addresses as keys in both requests, not in the request id."""

    addresses_in_id = False
