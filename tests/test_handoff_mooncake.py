"""Mooncake's handoff: one transfer id on both legs, and who P is, as its bootstrap server says."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from conformance.errors import HandoffBroken, UsageError
from conformance.handoffs import Handoff, Place, handoff_named
from conformance.scripted import wire
from conformance.serving.ports import DEFAULT_RANGE, PortRange

GOOD = json.dumps({"0": {"engine_id": "engine-7", "worker_addr": {"0": {"0": "tcp://h:1"}}}})


class Bootstrap(wire.Server):
    """Answers ``/query`` as told, and counts the questions."""

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Connection)
        self.status, self.body, self.asked = 200, GOOD, 0


class _Connection(wire.Connection):
    server: Bootstrap

    def respond(self, method: str, path: str, body: bytes) -> None:
        self.server.asked += 1
        found = (method, path) == ("GET", "/query")
        self.reply(self.server.status if found else 404, self.server.body.encode())


@pytest.fixture
def bootstrap() -> Iterator[Bootstrap]:
    lease = PortRange.parse(DEFAULT_RANGE).lease()
    with Bootstrap(lease.port) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()
    lease.release()


@pytest.fixture
def place(bootstrap: Bootstrap) -> Place:
    return Place("http://p", "http://d", ports={"bootstrap": bootstrap.server_address[1]})


def request(place: Place) -> Handoff:
    """The handoff of one more request."""
    return handoff_named("mooncake_bootstrap")(place)


def decode_params(handoff: Handoff) -> dict[str, Any]:
    params = handoff.decode_params(None)
    assert params is not None
    return params


def test_both_legs_carry_one_transfer_id_and_decode_knows_who_prefill_is(place: Place) -> None:
    handoff = request(place)
    asked, given = handoff.prefill_params(), decode_params(handoff)
    assert asked is not None
    assert (asked["do_remote_decode"], asked["do_remote_prefill"]) == (True, False)
    assert given == {
        "do_remote_decode": False,
        "do_remote_prefill": True,
        "remote_bootstrap_addr": f"http://127.0.0.1:{place.ports['bootstrap']}",
        "remote_engine_id": "engine-7",
        "transfer_id": asked["transfer_id"],
    }
    assert handoff.may_go_at_once


def test_every_request_has_a_transfer_id_of_its_own(place: Place) -> None:
    ids = {decode_params(request(place))["transfer_id"] for _ in range(3)}
    assert len(ids) == 3


def test_prefill_is_asked_who_it_is_once_per_place(place: Place, bootstrap: Bootstrap) -> None:
    for _ in range(3):
        decode_params(request(place))
    assert bootstrap.asked == 1
    bootstrap.body = GOOD.replace("engine-7", "engine-8")
    elsewhere = Place("http://p", "http://other", ports=place.ports)
    assert decode_params(request(elsewhere))["remote_engine_id"] == "engine-8"
    assert decode_params(request(place))["remote_engine_id"] == "engine-7"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, GOOD),
        (404, ""),
        (200, ""),
        (200, "no JSON"),
        (200, "[]"),
        (200, '"0"'),
        (200, "{}"),
        (200, '{"1": {"engine_id": "engine-7"}}'),
        (200, '{"0": {}}'),
        (200, '{"0": "engine-7"}'),
        (200, '{"0": {"engine_id": null}}'),
        (200, '{"0": {"engine_id": 7}}'),
    ],
)
def test_an_answer_that_names_no_engine_is_broken_and_not_remembered(
    place: Place, bootstrap: Bootstrap, status: int, body: str
) -> None:
    bootstrap.status, bootstrap.body = status, body
    with pytest.raises(HandoffBroken) as caught:
        request(place).decode_params(None)
    address = f"http://127.0.0.1:{place.ports['bootstrap']}"
    assert f"GET {address}/query should name the engine_id of data-parallel rank 0" in str(
        caught.value
    )
    bootstrap.status, bootstrap.body = 200, GOOD
    assert decode_params(request(place))["remote_engine_id"] == "engine-7"


def test_a_bootstrap_server_that_is_not_there_is_broken() -> None:
    lease = PortRange.parse(DEFAULT_RANGE).lease()
    place = Place("http://p", "http://d", ports={"bootstrap": lease.port})
    with pytest.raises(HandoffBroken, match="ConnectError"):
        request(place).decode_params(None)
    lease.release()


def test_without_a_bootstrap_port_the_profile_is_at_fault() -> None:
    with pytest.raises(UsageError, match=r"\$\{port:bootstrap\}"):
        request(Place("http://p", "http://d")).decode_params(None)
