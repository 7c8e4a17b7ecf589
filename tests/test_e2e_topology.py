"""Topologies: every prefill instance with every decode instance, of servers that really run."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import psutil
import pytest

from conformance.metrics import TokenSources
from conformance.pair import Ask, Pair, completion
from conformance.profile_file import builtin_profiles
from conformance.scripted.fleet import Place
from conformance.scripted.fleet import place as on_scripted_engine
from conformance.scripted.suite import until
from conformance.serving.deployment import Shape

pytestmark = pytest.mark.timeout(120)

NIXL = builtin_profiles()["nixl"]
TWO_BY_TWO = Shape("2P2D", prefills=2, decodes=2, decode_args=("--max-num-seqs", "3"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with on_scripted_engine(tmp_path_factory.mktemp("topology")) as made:
        yield made


@pytest.fixture(scope="module")
def four(place: Place) -> list[Pair]:
    """The pairs of two prefill and two decode instances."""
    return place.fleet.pairs(NIXL, place.model, TWO_BY_TWO)


def test_every_prefill_instance_is_paired_with_every_decode_instance(four: list[Pair]) -> None:
    urls = {(pair.place.prefill_url, pair.place.decode_url) for pair in four}
    assert len(four) == len(urls) == 4
    assert len({prefill for prefill, _ in urls}) == len({decode for _, decode in urls}) == 2
    # Counters belong to a server, so its pairs have to count through one client.
    assert len({id(pair.prefill) for pair in four}) == len({id(pair.decode) for pair in four}) == 2


def test_instances_have_side_channels_of_their_own(four: list[Pair]) -> None:
    by_prefill = {(p.place.prefill_url, p.place.ports["prefill_side_channel"]) for p in four}
    by_decode = {(p.place.decode_url, p.place.ports["decode_side_channel"]) for p in four}
    assert len(by_prefill) == len(by_decode) == 2
    assert len({port for _, port in by_prefill | by_decode}) == 4


def test_what_a_router_remembers_of_one_pair_is_not_another_pairs(four: list[Pair]) -> None:
    four[0].place.memo["engine"] = "of the first"
    assert all("engine" not in pair.place.memo for pair in four[1:])


def test_every_pair_transfers(four: list[Pair]) -> None:
    for number, pair in enumerate(four):
        body = completion(pair.prompts.tokens(40, "topology", number))
        seen = pair.exchange(Ask("forty tokens", "completions", lambda _, body=body: body), body)
        assert TokenSources.of(seen.decode_delta) == TokenSources(0, 0, 40)
        assert seen.legs[0].decode.token_ids == pair.expected("completions", body).token_ids


def test_a_topologys_servers_are_reported_with_its_label_and_arguments(
    place: Place, four: list[Pair]
) -> None:
    starts = place.starts[:5]
    assert [start.role for start in starts] == [
        *("prefill", "prefill", "decode", "decode", "reference")
    ]
    assert {start.deployment for start in starts[:4]} == {f"nixl × {place.model} × 2P2D"}
    assert ["--max-num-seqs" in start.command for start in starts] == [
        *(False, False, True, True, False)
    ]


def test_the_ordinary_pair_takes_the_place_of_the_topology_and_keeps_the_reference(
    place: Place, four: list[Pair]
) -> None:
    before = len(place.starts)
    (pair,) = place.fleet.pairs(NIXL, place.model)
    assert [start.role for start in place.starts[before:]] == ["prefill", "decode"]
    assert not any(client.server.alive for p in four for client in (p.prefill, p.decode))
    assert [pair] == place.fleet.pairs(NIXL, place.model)
    assert len(place.starts) == before + 2


def test_a_pair_that_lost_a_server_is_started_again_as_a_whole(place: Place) -> None:
    (pair,) = place.fleet.pairs(NIXL, place.model)
    before = len(place.starts)
    kill(pair.decode.server.url)
    assert until(lambda: not pair.decode.server.alive)
    (again,) = place.fleet.pairs(NIXL, place.model)
    assert [start.role for start in place.starts[before:]] == ["prefill", "decode"]
    assert again.prefill.server.alive
    assert not pair.prefill.server.alive


def kill(url: str) -> None:
    """The process that listens there."""
    port = int(url.rpartition(":")[2])
    for child in psutil.Process().children(recursive=True):
        listening = [c for c in child.net_connections("tcp") if c.status == psutil.CONN_LISTEN]
        if any(connection.laddr.port == port for connection in listening):
            os.kill(child.pid, signal.SIGKILL)
