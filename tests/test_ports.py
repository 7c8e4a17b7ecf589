"""Leased ports: free, nobody else's, and given back even by a process that is killed."""

from __future__ import annotations

import random
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from conformance.errors import EnvironmentProblem, UsageError
from conformance.serving.ports import DEFAULT_RANGE, Lease, PortRange, is_free, is_open

LEASE_AND_WAIT = """
import sys
from conformance.serving.ports import PortRange
lease = PortRange.parse(sys.argv[1]).lease()
print(lease.port, flush=True)
sys.stdin.read()
"""


def listener(port: int, address: str = "127.0.0.1") -> socket.socket:
    made = socket.create_server((address, port))
    made.listen()
    return made


@pytest.fixture
def three() -> PortRange:
    """Three neighbouring ports that are free; above what the suite or Linux hands out."""
    while True:
        first = random.randrange(61000, 65000)
        if all(map(is_free, range(first, first + 3))):
            return PortRange(first, first + 2)


@pytest.fixture
def held() -> Iterator[ExitStack]:
    """Closes what a test opens."""
    with ExitStack() as stack:
        yield stack


def lease(ports: PortRange, held: ExitStack) -> Lease:
    made = ports.lease()
    held.callback(made.release)
    return made


def test_leases_differ_and_stay_within_the_range(three: PortRange, held: ExitStack) -> None:
    ports = {lease(three, held).port for _ in range(3)}
    assert ports == {three.first, three.first + 1, three.last}


def test_a_leased_port_can_be_listened_on(three: PortRange, held: ExitStack) -> None:
    port = lease(three, held).port
    assert is_free(port)
    assert not is_open(port)
    held.enter_context(closing(listener(port)))
    assert is_open(port)
    assert not is_free(port)


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_an_occupied_port_is_skipped(three: PortRange, held: ExitStack, address: str) -> None:
    held.enter_context(closing(listener(three.first, address)))
    held.enter_context(closing(listener(three.last, address)))
    assert lease(three, held).port == three.first + 1


def test_a_full_range_names_itself_and_the_option(three: PortRange, held: ExitStack) -> None:
    held.enter_context(closing(listener(three.first)))
    with pytest.raises(EnvironmentProblem) as caught:
        PortRange(three.first, three.first).lease()
    assert f"no free port in {three.first}-{three.first}" in str(caught.value)
    assert "--port-range" in str(caught.value)


def test_a_range_that_is_all_leased_is_full(three: PortRange, held: ExitStack) -> None:
    for _ in range(3):
        lease(three, held)
    with pytest.raises(EnvironmentProblem, match="--port-range"):
        three.lease()


def test_a_refused_port_is_not_kept_from_others(three: PortRange, held: ExitStack) -> None:
    one = PortRange(three.first, three.first)
    with closing(listener(three.first)), pytest.raises(EnvironmentProblem):
        one.lease()
    assert lease(one, held).port == three.first


def test_a_released_port_can_be_leased_again(three: PortRange, held: ExitStack) -> None:
    one = PortRange(three.first, three.first)
    first = one.lease()
    first.release()
    first.release()
    assert lease(one, held).port == three.first


def test_a_lease_holds_across_processes_and_ends_with_a_killed_one(
    three: PortRange, held: ExitStack
) -> None:
    one = PortRange(three.first, three.first)
    owner = subprocess.Popen(
        [sys.executable, "-c", LEASE_AND_WAIT, f"{one.first}-{one.last}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with owner:
        assert owner.stdout is not None
        assert owner.stdout.readline().strip() == str(one.first)
        with pytest.raises(EnvironmentProblem):
            one.lease()
        owner.kill()
        owner.wait()
        assert lease(one, held).port == one.first


@pytest.mark.parametrize(
    ("text", "expected"),
    [("20000-29999", (20000, 29999)), ("20000", (20000, 20000)), ("1024-65535", (1024, 65535))],
)
def test_a_range_is_parsed(text: str, expected: tuple[int, int]) -> None:
    found = PortRange.parse(text)
    assert (found.first, found.last) == expected


def test_the_default_stays_below_the_ephemeral_ports() -> None:
    assert PortRange.parse(DEFAULT_RANGE).last < 32768


@pytest.mark.parametrize("text", ["", "-", "ports", "20000-x", "20000-21000-22000", "-20000"])
def test_what_is_no_range_shows_how_to_write_one(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        PortRange.parse(text)
    assert f"--port-range {text!r}: write FIRST-LAST" in str(caught.value)


@pytest.mark.parametrize("text", ["30000-20000", "80-90", "60000-70000", "0-0"])
def test_a_range_that_cannot_be_is_refused_with_the_limits(text: str) -> None:
    with pytest.raises(UsageError, match=r"1024 <= FIRST <= LAST <= 65535"):
        PortRange.parse(text)
