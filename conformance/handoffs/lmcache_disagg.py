"""LMCache's disaggregated prefill: P writes into decode's buffer, and tells a proxy when it has."""

from __future__ import annotations

import uuid

from conformance.errors import HandoffBroken
from conformance.handoffs.base import Handoff, Params, Place
from conformance.handoffs.mailbox import Mailbox, Message

# A few hundred tokens over a loopback take milliseconds; the first transfer also connects.
WRITTEN_LIMIT_S = 20.0


class LMCacheDisagg(Handoff):
    """P is told where decode's LMCache buffer is, writes into it and tells the proxy when it has.

    P's HTTP answer comes before the KV is written, so decode is asked only once the proxy has
    been told: earlier it would find nothing and compute the prompt. Decode itself gets no
    params; it finds the chunks by their hashes (lmcache 0.5.6, ``vllm_v1_adapter.py`` and
    ``pd_backend.py``). Ports are lists, one of each tensor-parallel rank.
    """

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._id = f"lmcache-{uuid.uuid4()}"

    def prefill_params(self) -> Params | None:
        self._mailbox()
        spec = {
            "req_id": self._id,
            "receiver_host": self.place.host,
            "receiver_init_port": [self.place.port("peer_init")],
            "receiver_alloc_port": [self.place.port("peer_alloc")],
        }
        return {"ret_first_tok": True, "disagg_spec": spec}

    def decode_params(self, returned: Params | None) -> Params | None:
        if not returned or not isinstance(returned.get("first_tok"), int):
            raise HandoffBroken(
                f"prefill returned kv_transfer_params={returned!r}, but should return first_tok: "
                "its LMCache did not see the request, and decode would recompute the prompt"
            )
        what = f"the proxy should be told that the KV of {self._id} is written"
        self._mailbox().find(self._is_mine, WRITTEN_LIMIT_S, what)
        return None

    def _mailbox(self) -> Mailbox:
        port = self.place.port("pd_proxy")
        mailbox = Mailbox.on("PULL", self.place.host, port)
        self.place.memo[f"mailbox {port}"] = mailbox  # keeps it open for the pair's lifetime
        return mailbox

    def _is_mine(self, message: Message) -> bool:
        return message.get("type") == "ProxyNotif" and message.get("req_id") == self._id
