"""The folders and ports that a contract's connectors are given."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from conformance.contracts import places
from conformance.contracts.places import Places


def test_a_name_is_one_port_and_another_name_another(tmp_path: Path) -> None:
    found = Places(tmp_path)
    filled = found.fill({"a": "${port:one}", "b": ["tcp://h:${port:one}"], "c": "${port:two}"})
    assert filled["a"] in places.PORTS
    assert filled["b"] == [f"tcp://h:{filled['a']}"]
    assert filled["c"] in places.PORTS
    assert filled["c"] != filled["a"]


def test_no_port_that_an_outgoing_connection_may_take() -> None:
    told = Path("/proc/sys/net/ipv4/ip_local_port_range")
    if not told.exists():
        pytest.skip("only Linux says which ports it gives to outgoing connections")
    first, last = map(int, told.read_text().split())
    assert not set(places.PORTS) & set(range(first, last + 1))


def test_a_port_in_use_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        spare = port - 1 if places._free(port - 1) else port + 1
        monkeypatch.setattr(places, "PORTS", (port, spare))
        assert Places(tmp_path).port("side_channel") == spare
