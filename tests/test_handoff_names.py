"""Handoffs by name: shipped, several at once, a class of one's own, an installed one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.errors import HandoffBroken, UsageError
from conformance.handoffs import (
    HANDOFFS,
    Handed,
    Handoff,
    Place,
    check_handoff,
    handoff_named,
    meaning_of,
    merged_name,
)
from conformance.handoffs.base import Headers, Params

PLACE = Place("http://127.0.0.1:1", "http://127.0.0.1:2")
OWN = """
from conformance.handoffs import Handoff
class Pigeon(Handoff):
    "By pigeon."
    def headers(self):
        return {"X-Pigeon": "grey"}
    def decode_params(self, returned):
        return {"pigeon": self.place.prefill_url}
class Crow: pass
"""


class Tagged(Handoff):
    """Params and headers of its own on both legs."""

    def headers(self) -> Headers:
        return {"X-Tag": "1"}

    def prefill_params(self) -> Params | None:
        return {"tag": 1}

    def decode_params(self, returned: Params | None) -> Params | None:
        return {"tag": 2, "of_prefill": returned}


class Broken(Handoff):
    """Never satisfied."""

    def decode_params(self, returned: Params | None) -> Params | None:
        raise HandoffBroken("nothing came")


@pytest.fixture(autouse=True)
def kinds(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two handoffs of ours beside the shipped ones; whatever is imported is forgotten again."""
    monkeypatch.setitem(HANDOFFS, "tagged", Tagged)
    monkeypatch.setitem(HANDOFFS, "broken", Broken)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with somebody's own handoff in it."""
    (tmp_path / "own_pigeons.py").write_text(OWN)
    return tmp_path


def refusal(name: str, *folders: Path) -> str:
    with pytest.raises(UsageError) as caught:
        handoff_named(name, folders)
    assert list(check_handoff(name, folders)) == [("handoff", str(caught.value))]
    return str(caught.value)


def test_merged_handoffs_put_their_params_and_headers_together() -> None:
    merged = handoff_named("params_from_prefill+tagged")(PLACE)
    asked = merged.prefill_params()
    assert asked is not None
    assert (asked["tag"], asked["do_remote_decode"]) == (1, True)
    returned: Params = {
        "do_remote_prefill": True,
        "remote_engine_id": "e",
        "remote_block_ids": [[1]],
        "remote_host": "h",
    }
    handed = merged.handed(returned)
    assert handed.params == {**returned, "tag": 2, "of_prefill": returned}
    assert handed.headers == merged.headers() == {"X-Tag": "1"}


def test_merged_handoffs_that_hand_nothing_over_send_nothing() -> None:
    merged = handoff_named("none+none")(PLACE)
    assert merged.prefill_params() is None
    assert merged.handed({"some": "params"}) == Handed()


def test_one_broken_part_breaks_the_merged_handoff() -> None:
    merged = handoff_named("tagged+broken")(PLACE)
    with pytest.raises(HandoffBroken, match="nothing came"):
        merged.decode_params({})


def test_the_name_of_a_merged_handoff_is_understood_again() -> None:
    name = merged_name(["tagged", "none", "params_from_prefill", "tagged"])
    assert name == "tagged+params_from_prefill"
    assert handoff_named(name)(PLACE).prefill_params()
    assert merged_name(["none", "none"]) == merged_name([]) == "none"


def test_the_meaning_of_a_merged_handoff_is_that_of_its_parts() -> None:
    assert meaning_of("tagged+broken") == "Params and headers of its own on both legs. " + (
        "Never satisfied."
    )
    assert meaning_of("own_pigeons:Pigeon") == "own_pigeons:Pigeon"


def test_a_class_of_ones_own_is_found_in_python_path(folder: Path) -> None:
    handoff = handoff_named("own_pigeons:Pigeon", (folder,))(PLACE)
    assert handoff.handed(None) == Handed({"pigeon": "http://127.0.0.1:1"}, {"X-Pigeon": "grey"})
    assert list(check_handoff("own_pigeons:Pigeon", (folder,))) == []


def test_a_class_of_ones_own_can_be_one_of_several(folder: Path) -> None:
    merged = handoff_named("tagged+own_pigeons:Pigeon", (folder,))(PLACE)
    assert merged.headers() == {"X-Tag": "1", "X-Pigeon": "grey"}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("own_pigeons:Owl", "cannot be imported (module 'own_pigeons' has no attribute 'Owl'"),
        ("own_gulls:Gull", "cannot be imported (No module named 'own_gulls')"),
        ("own_pigeons:Crow", "should be a subclass of conformance.handoffs.Handoff"),
    ],
)
def test_a_class_that_is_none_is_named(folder: Path, name: str, words: str) -> None:
    message = refusal(name, folder)
    assert f"{name!r}" in message
    assert words in message


def test_where_to_put_a_class_that_was_not_found_is_said() -> None:
    assert "name its folder in python_path" in refusal("own_pigeons:Pigeon")


def test_an_installed_handoff_is_found_by_its_entry_point(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = folder / "pigeons-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: pigeons\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(
        "[kv_conformance.handoffs]\npigeon = own_pigeons:Pigeon\ncrow = own_pigeons:Crow\n"
    )
    monkeypatch.syspath_prepend(folder)
    assert handoff_named("pigeon")(PLACE).headers() == {"X-Pigeon": "grey"}
    assert "should be a subclass" in refusal("crow")


def test_an_unknown_name_is_refused_with_the_near_one_and_the_ways_to_add_one() -> None:
    message = refusal("params_from_prefil")
    assert message.startswith("'params_from_prefil' is unknown; did you mean 'params_from_prefill'")
    for known in HANDOFFS:
        assert known in message
    assert "'package.module:Class'" in message
    assert "entry point of the group kv_conformance.handoffs" in message
    assert "did you mean" not in refusal("zzz")


def test_a_port_is_found_by_its_name_alone_or_behind_a_childs() -> None:
    place = Place("p", "d", ports={"side": 1, "mooncake-bootstrap": 2, "a-twice": 3, "b-twice": 4})
    assert (place.port("side"), place.port("bootstrap")) == (1, 2)
    for name in ("gone", "twice", "strap"):
        with pytest.raises(UsageError) as caught:
            place.port(name)
        assert f"a port named {name!r}" in str(caught.value)
        assert "side, mooncake-bootstrap" in str(caught.value)
        assert f"--handoff-port {name}=PORT" in str(caught.value)


def test_params_are_added_to_a_copy() -> None:
    first = Handed({"a": 1}, {"H": "x"})
    second = first.with_ids((4, 5)).with_param("a", 2)
    assert first == Handed({"a": 1}, {"H": "x"})
    assert second == Handed({"a": 2, "prompt_token_ids": [4, 5]}, {"H": "x"})
    body = {"prompt": [1]}
    assert second.into(body) == {"prompt": [1], "kv_transfer_params": second.params}
    assert Handed().into(body) == body == {"prompt": [1]}
    assert Handed().into(body) is not body
