"""MoRIIO instances tell the router who they are, and that is what requests are told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from conformance.errors import HandoffBroken, UsageError
from conformance.handoffs import Handoff, Place, handoff_named, moriio_registry
from conformance.scripted.moriio import PORTS, register
from conformance.serving.ports import PortRange

Params = dict[str, Any]


def way(ping: int) -> Handoff:
    ports = {**PORTS, "proxy_ping": ping}
    return handoff_named("moriio_read")(
        Place("http://127.0.0.1:1", "http://127.0.0.1:2", ports=ports)
    )


@pytest.fixture
def ping() -> Iterator[int]:
    lease = PortRange.parse("20000-29999").lease()
    yield lease.port
    lease.release()


def registration(kind: str, side: str, transfer_mode: str) -> Params:
    address = f"host:::1,handshake:{PORTS[side + '_handshake']},notify:{PORTS[side + '_notify']}"
    return {
        "type": kind,
        "http_address": "::1:8100",
        "zmq_address": address,
        "dp_size": 1,
        "tp_size": 2,
        "transfer_mode": transfer_mode,
    }


def another_decode() -> Params:
    address = "host:::1,handshake:7302,notify:62006"
    return {**registration("D", "decode", "READ"), "zmq_address": address}


def test_addresses_are_what_the_instances_register(ping: int) -> None:
    sockets = [
        register(ping, registration("P", "prefill", "READ")),
        register(ping, {**registration("D", "decode", "READ"), "zmq_address": "nonsense"}),
        register(ping, registration("D", "decode", "READ")),
        register(ping, another_decode()),
    ]
    kind = way(ping)
    asked = kind.prefill_params() or {}
    assert (asked["remote_tp_size"], asked["remote_dp_size"]) == (2, 1)
    request = kind.headers()["X-Request-Id"]
    assert "___prefill_addr_host:::1,handshake:6301,notify:61005___decode_addr_" in request
    assert "___decode_addr_host:::1,handshake:7301,notify:62005_" in request
    for socket in sockets:
        socket.close()


def test_an_instance_of_the_other_mode_is_broken(ping: int) -> None:
    socket = register(ping, registration("D", "decode", "WRITE"))
    with pytest.raises(HandoffBroken, match=r"transfer_mode='WRITE'.*set read_mode"):
        way(ping).prefill_params()
    socket.close()


@pytest.mark.parametrize("said", [None, registration("P", "decode", "READ"), another_decode()])
def test_an_instance_that_does_not_register_is_broken(
    ping: int, said: Params | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moriio_registry, "REGISTERED_LIMIT_S", 0.3)
    socket = register(ping, said) if said else None
    with pytest.raises(HandoffBroken, match="decode instance should register as D"):
        way(ping).prefill_params()
    if socket:
        socket.close()


def test_without_ports_the_error_says_how_to_give_them() -> None:
    with pytest.raises(UsageError, match="--handoff-port decode_handshake=PORT"):
        handoff_named("moriio_read")(Place("http://a:1", "http://b:2")).prefill_params()
