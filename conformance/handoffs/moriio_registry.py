"""Who a MoRIIO instance is: by its own registration, or by the ports that it was given.

An instance with ``proxy_ip`` tells the router every three seconds: ``type`` P or D,
``http_address``, ``zmq_address``, ``dp_size``, ``tp_size`` and ``transfer_mode``, over a ZMQ
dealer socket (vLLM 0.32.0, ``moriio_connector.py``, ``_start_heartbeat``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from conformance.errors import HandoffBroken
from conformance.handoffs.base import Params, Place
from conformance.handoffs.mailbox import Mailbox, Message

Side = Literal["prefill", "decode"]
_TYPE = {"prefill": "P", "decode": "D"}
# Three missed heartbeats.
REGISTERED_LIMIT_S = 10.0


@dataclass(frozen=True)
class Peer:
    """One instance as the other has to know it."""

    host: str
    handshake_port: int
    notify_port: int
    dp_size: int = 1
    tp_size: int = 1

    @property
    def address(self) -> str:
        """In the form that request ids carry."""
        return f"host:{self.host},handshake:{self.handshake_port},notify:{self.notify_port}"

    def keys(self) -> Params:
        """In the form that ``kv_transfer_params`` carries."""
        return {
            "remote_host": self.host,
            "remote_handshake_port": self.handshake_port,
            "remote_notify_port": self.notify_port,
        }


def peer(place: Place, side: Side, mode: str) -> Peer:
    """One side of a pair; asked for once. Raises :class:`HandoffBroken`.

    Without a port named ``proxy_ping``, such as beside a router that runs already, nobody can
    register with us, and the ports named after the side are believed.
    """
    key = f"moriio {side}"
    if key not in place.memo:
        given = Peer(place.host, place.port(f"{side}_handshake"), place.port(f"{side}_notify"))
        pings = any(name == "proxy_ping" or name.endswith("-proxy_ping") for name in place.ports)
        place.memo[key] = _registered(place, side, mode, given) if pings else given
    found = place.memo[key]
    assert isinstance(found, Peer)
    return found


def _registered(place: Place, side: Side, mode: str, given: Peer) -> Peer:
    """What the instance with these ports says of itself."""
    port = place.port("proxy_ping")
    mailbox = Mailbox.on("ROUTER", place.host, port)
    place.memo[f"mailbox {port}"] = mailbox  # keeps it open for the pair's lifetime
    what = (
        f"the {side} instance should register as {_TYPE[side]} with notify port "
        f"{given.notify_port} at port {port}"
    )
    said = mailbox.find(lambda m: _is(m, side, given), REGISTERED_LIMIT_S, what)
    if said.get("transfer_mode") != mode:
        raise HandoffBroken(
            f"the {side} instance registered with transfer_mode={said.get('transfer_mode')!r}, "
            f"but the profile's handoff is for {mode}: set read_mode in extra_config"
        )
    return _peer(said)


def _is(message: Message, side: Side, given: Peer) -> bool:
    if message.get("type") != _TYPE[side]:
        return False
    try:
        found = _peer(message)
    except (ValueError, KeyError):
        return False
    return (found.handshake_port, found.notify_port) == (given.handshake_port, given.notify_port)


def _peer(message: Message) -> Peer:
    """From ``host:IP,handshake:PORT,notify:PORT``; an IPv6 address has colons of its own."""
    parts = dict(part.split(":", 1) for part in str(message["zmq_address"]).split(","))
    return Peer(
        parts["host"],
        int(parts["handshake"]),
        int(parts["notify"]),
        int(message.get("dp_size") or 1),
        int(message.get("tp_size") or 1),
    )
