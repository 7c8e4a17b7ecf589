"""A router's socket: one per address, closed with its last holder, clear when it cannot open."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable, Iterator

import msgspec
import pytest
import zmq

from conformance.errors import EnvironmentProblem, HandoffBroken
from conformance.handoffs.mailbox import Mailbox
from conformance.serving.ports import PortRange, is_open

HOST = "127.0.0.1"


@pytest.fixture
def port() -> Iterator[int]:
    lease = PortRange.parse("20000-29999").lease()
    yield lease.port
    lease.release()


@pytest.fixture
def sender(port: int) -> Iterator[zmq.Socket[bytes]]:
    found = zmq.Context.instance().socket(zmq.PUSH)
    found.linger = 0
    found.connect(f"tcp://{HOST}:{port}")
    yield found
    found.close()


def test_an_address_has_one_mailbox_until_its_last_holder_lets_go(port: int) -> None:
    first = Mailbox.on("PULL", HOST, port)
    second = Mailbox.on("PULL", HOST, port)
    assert second is first
    del second
    assert is_open(port)
    del first
    until(lambda: not is_open(port))  # ZMQ closes in a thread of its own
    assert is_open(Mailbox.on("PULL", HOST, port).port)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_was_sent_before_it_opened_arrives(port: int, sender: zmq.Socket[bytes]) -> None:
    sender.send(msgspec.msgpack.encode({"n": 1}))
    mailbox = Mailbox.on("PULL", HOST, port)
    assert mailbox.find(lambda m: m.get("n") == 1, 5, "never") == {"n": 1}


def test_the_latest_of_several_is_found(port: int, sender: zmq.Socket[bytes]) -> None:
    mailbox = Mailbox.on("PULL", HOST, port)
    for number in (1, 2, 3):
        sender.send(msgspec.msgpack.encode({"n": number, "who": "same"}))
    mailbox.find(lambda m: m["n"] == 3, 5, "never")
    assert mailbox.find(lambda m: m["who"] == "same", 5, "never")["n"] == 3


def test_what_is_no_map_is_passed_over(port: int, sender: zmq.Socket[bytes]) -> None:
    mailbox = Mailbox.on("PULL", HOST, port)
    for noise in (b"", b"\xc1", msgspec.msgpack.encode([1]), msgspec.msgpack.encode({"n": 1})):
        sender.send(noise)
    assert mailbox.find(lambda m: True, 5, "never") == {"n": 1}


def test_silence_is_broken_and_says_what_should_have_come(port: int) -> None:
    with pytest.raises(HandoffBroken, match=r"the pigeon should land within 0 s; .*: nothing"):
        Mailbox.on("PULL", HOST, port).find(lambda _: True, 0.1, "the pigeon should land")


def test_a_port_that_a_router_holds_is_named(port: int) -> None:
    with socket.socket() as router:
        router.bind((HOST, port))
        router.listen()
        with pytest.raises(EnvironmentProblem, match=rf"port {port} cannot be listened on"):
            Mailbox.on("PULL", HOST, port)


@pytest.mark.parametrize("missing", ["zmq", "msgspec"])
def test_a_missing_library_is_named_with_the_fix(
    port: int, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(EnvironmentProblem, match=rf"{missing} is not.*kv-conformance\[router\]"):
        Mailbox.on("PULL", HOST, port)
