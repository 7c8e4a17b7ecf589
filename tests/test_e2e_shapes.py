"""Shapes with options of their own: what gets them, and which reference they are compared with."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from conformance.pair import Pair, completion
from conformance.profile_file import builtin_profiles
from conformance.scripted.fleet import Place
from conformance.scripted.fleet import place as on_scripted_engine
from conformance.serving.deployment import PAIR, Shape

pytestmark = pytest.mark.timeout(120)

PROFILES = builtin_profiles()
SIDES = Shape("sides", prefill_args=("--on-p",), decode_args=("--on-d",))
ALL = Shape("all", args=("--on-all",), env=(("ON_ALL", "yes"),))
ALL_TOO = Shape("all too", args=("--on-all",), decode_args=("--on-d",), env=(("ON_ALL", "yes"),))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with on_scripted_engine(tmp_path_factory.mktemp("shapes")) as made:
        yield made


def pair_of(place: Place, shape: Shape, profile: str = "nixl") -> Pair:
    (pair,) = place.fleet.pairs(PROFILES[profile], place.model, shape)
    return pair


def test_references_are_kept_by_what_they_are_started_with(place: Place) -> None:
    """One story: servers of one step are those of the next."""
    ordinary = pair_of(place, PAIR)
    assert place.roles_since(0) == ["prefill", "decode", "reference"]
    body = completion(ordinary.prompts.tokens(40, "kept"))
    first = ordinary.expected("completions", body)

    sides = pair_of(place, SIDES)
    assert place.roles_since(3) == ["prefill", "decode"]
    assert sides.oracle is ordinary.oracle
    assert ["--on-p" in start.command for start in place.starts[3:]] == [True, False]
    assert ["--on-d" in start.command for start in place.starts[3:]] == [False, True]

    own = pair_of(place, ALL)
    assert place.roles_since(5) == ["prefill", "decode", "reference"]
    assert all("--on-all" in start.command for start in place.starts[5:])
    assert place.starts[7].deployment == f"reference × {place.model} × all"
    assert not ordinary.oracle.clients[0].server.alive, "one pair and one reference at a time"
    assert own.expected("completions", body) is not first, "nothing remembered of another"
    assert own.oracle.clients[0].deployment == f"reference × {place.model} × all"

    shared = pair_of(place, ALL_TOO, "example")
    assert place.roles_since(8) == ["prefill", "decode"]
    assert shared.oracle is own.oracle

    back = pair_of(place, PAIR)
    assert place.roles_since(10) == ["prefill", "decode", "reference"]
    assert "--on-all" not in place.starts[12].command
    assert place.starts[12].deployment == f"reference × {place.model}"
    assert not own.oracle.clients[0].server.alive
    assert back.expected("completions", body) is first, "what it said before is remembered"


def test_logs_are_named_after_shapes(place: Place) -> None:
    pair_of(place, ALL)
    logs = [path.name for path in (place.root / "report" / "logs").iterdir()]
    model = place.model.replace("/", "_")
    for name in (f"nixl-{model}-all-prefill", f"reference-{model}-all-reference"):
        assert any(re.fullmatch(rf"(gw\d+)?\d\d-{re.escape(name)}\.log", log) for log in logs)
