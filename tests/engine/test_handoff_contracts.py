"""What the handoffs send is what vLLM's own code reads: the peer, the id, and nothing else's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance.handoffs import Handoff, Place, handoff_named
from conformance.scripted.moriio import PORTS
from engine.conftest import Child

pytestmark = pytest.mark.timeout(400)

CHILD = Path(__file__).parent / "contract_child.py"
PLACE = Place("http://a:1", "http://b:2", ports={**PORTS, "prefill_p2p": 5710})
PREFILL = ["127.0.0.1", PORTS["prefill_handshake"], PORTS["prefill_notify"]]
DECODE = ["127.0.0.1", PORTS["decode_handshake"], PORTS["decode_notify"]]


def test_vllm_reads_what_the_handoffs_send(engine_child: Child) -> None:
    write, by_keys, tier = map(way, ("moriio_write", "moriio_write_by_keys", "tier_p2p"))
    legs = [leg(kind, side) for kind in (write, by_keys) for side in ("prefill", "decode")]
    without = leg(by_keys, "prefill")
    del without["params"]["remote_notify_port"]
    nowhere = {**leg(write, "prefill"), "request": "plain"}
    tiers = [tier.prefill_params(), tier.decode_params(None)]
    told = engine_child(CHILD, {"moriio": [*legs, without, nowhere], "tiers": tiers})
    transfers = [one["params"]["transfer_id"] for one in legs]
    assert told[:4] == [
        [transfers[0], *DECODE],
        [transfers[0], *PREFILL],
        [transfers[2], *DECODE],
        [transfers[2], *PREFILL],
    ]
    assert transfers[0] == transfers[1] != transfers[2] == transfers[3]
    assert ["remote_notify_port" in told[4], "remote_host" in told[5]] == [True, True]
    (_, stored), (fetched, _) = told[6:]
    assert fetched == [stored, "127.0.0.1:5710"]


def way(name: str) -> Handoff:
    return handoff_named(name)(PLACE)


def leg(kind: Handoff, side: str) -> dict[str, Any]:
    """One leg's request, as MoRIIO is given it; a prefill writes."""
    params = kind.prefill_params() if side == "prefill" else kind.decode_params(None)
    request = kind.headers()["X-Request-Id"]
    return {"request": request, "params": params, "write": side == "prefill"}
