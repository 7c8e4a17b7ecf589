"""Deployments: what they are called, what a router is told of them, and how they are stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from conformance.serving.daemon import DaemonProcess
from conformance.serving.deployment import PAIR, TRIAL, Deployment, Extra, Key, Shape
from conformance.serving.leases import Leases
from conformance.serving.server import Server


class Fake:
    """A process, or leases, that note what becomes of them."""

    def __init__(self, name: str, journal: list[str]) -> None:
        self.name, self.journal, self.alive = name, journal, True
        self.folders = {"store": Path("/run/store")}

    def begin_stop(self) -> None:
        self.journal.append(f"ask {self.name}")

    def stop(self) -> None:
        self.journal.append(f"end {self.name}")

    def release(self) -> None:
        self.journal.append("release")


def deployment(journal: list[str]) -> Deployment:
    """Two prefill, one decode, one daemon."""
    made = Deployment(Key("mine", "tiny", Shape("2P1D", prefills=2)))
    made.prefills = [cast("Server", Fake(name, journal)) for name in ("p1", "p2")]
    made.decodes = [cast("Server", Fake("d", journal))]
    made.daemons = [cast("DaemonProcess", Fake("master", journal))]
    made.leases = cast("Leases", Fake("leases", journal))
    return made


@pytest.mark.parametrize(
    ("key", "label"),
    [
        (Key("nixl", "tiny"), "nixl × tiny"),
        (Key("nixl", "tiny", PAIR), "nixl × tiny"),
        (Key("nixl", "tiny", Shape("2P2D", 2, 2)), "nixl × tiny × 2P2D"),
        (Key(None, "tiny"), "reference × tiny"),
        (Key("nixl", "tiny", TRIAL), "nixl × tiny × trial"),
    ],
)
def test_a_deployment_is_called_after_what_it_is(key: Key, label: str) -> None:
    assert key.label == label


def test_servers_end_together_before_the_daemons_they_need() -> None:
    journal: list[str] = []
    deployment(journal).stop()
    servers, daemons = journal[:6], journal[6:]
    assert servers == ["ask p1", "ask p2", "ask d", "end p1", "end p2", "end d"]
    assert daemons == ["ask master", "end master", "release"]


@pytest.mark.parametrize("lost", ["p2", "d", "master"])
def test_a_deployment_that_lost_a_process_is_not_alive(lost: str) -> None:
    made = deployment([])
    assert made.alive
    everyone = cast("list[Any]", [*made.servers, *made.daemons])
    next(one for one in everyone if one.name == lost).alive = False
    assert not made.alive


def test_a_router_is_told_the_ports_of_both_and_no_folders() -> None:
    made = deployment([])
    (p1, p2), (d,) = made.prefills, made.decodes
    shared = {("port", "meeting"): "1", ("dir", "store"): "/run/store", ("python", ""): "python"}
    made.ports = {
        p1: {**shared, ("port", "side"): "11"},
        p2: {**shared, ("port", "side"): "12"},
        d: {**shared, ("port", "d_side"): "21"},
    }
    assert made.ports_of(p1, d) == {"meeting": 1, "side": 11, "d_side": 21}
    assert made.ports_of(p2, d) == {"meeting": 1, "side": 12, "d_side": 21}


def test_folders_are_those_of_the_leases() -> None:
    assert deployment([]).folders == {"store": Path("/run/store")}
    assert Deployment(Key(None, "tiny")).folders == {}


def test_arguments_and_environment_are_for_every_server_or_for_one_role() -> None:
    shape = Shape(
        "mine",
        args=("--all",),
        prefill_args=("--p",),
        decode_args=("--d",),
        reference_args=("--r",),
        env=(("A", "1"),),
    )
    assert shape.extra("prefill") == Extra(("--all", "--p"), (("A", "1"),))
    assert shape.extra("decode") == Extra(("--all", "--d"), (("A", "1"),))
    assert shape.extra("reference") == Extra(("--all", "--r"), (("A", "1"),))
    assert PAIR.extra("reference") == Extra()


@pytest.mark.parametrize(
    ("shape", "shared"),
    [
        (Shape("2P2D", 2, 2), True),
        (Shape("small", prefill_args=("--x",), decode_args=("--y",)), True),
        (Shape("all", args=("--x",)), False),
        (Shape("own", reference_args=("--x",)), False),
        (Shape("env", env=(("A", "1"),)), False),
    ],
    ids=lambda value: getattr(value, "label", ""),
)
def test_shapes_whose_reference_is_started_alike_share_it(shape: Shape, shared: bool) -> None:
    ordinary = Key("nixl", "tiny").reference
    assert (Key("nixl", "tiny", shape).reference == ordinary) is shared
    assert Key("other", "tiny", shape).reference == Key("nixl", "tiny", shape).reference
    assert Key("nixl", "large", shape).reference != Key("nixl", "tiny", shape).reference


def test_ranks_are_those_of_the_arguments() -> None:
    shape = Shape("TP2-TP1", prefill_args=("--x", "--tensor-parallel-size", "2"))
    assert [shape.ranks(role) for role in ("prefill", "decode", "reference")] == [2, 1, 1]
