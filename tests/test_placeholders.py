"""Placeholders: every kind found, filled and renamed, and nothing else taken for one."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.placeholders import fill, names_in, renamed, unknown_in

PYTHON = ("python", "")
LEASED = {
    ("port", "side"): "20123",
    ("dir", "store"): "/run/store",
    ("file", "a.json"): "/run/a.json",
    ("bin", "master"): "/env/bin/master",
    PYTHON: "/env/bin/python",
}


@pytest.mark.parametrize(
    ("value", "filled"),
    [
        ("${file:a.json}", "/run/a.json"),
        ("@${file:a.json}", "@/run/a.json"),
        ("${bin:master}", "/env/bin/master"),
        ("${python}", "/env/bin/python"),
        ("${python} -c ${dir:store}:${port:side}", "/env/bin/python -c /run/store:20123"),
        ("$python {port:side} $", "$python {port:side} $"),
        (("${python}", "-m"), ["/env/bin/python", "-m"]),
        ({"${dir:store}": 1}, {"/run/store": 1}),
        ({"a": None, "b": [True, 1.5]}, {"a": None, "b": [True, 1.5]}),
    ],
)
def test_every_kind_is_filled_wherever_it_stands(value: Any, filled: Any) -> None:
    assert fill(value, LEASED) == filled


@pytest.mark.parametrize("text", ["${python}", "${bin:gone}", "${file:gone}", "${port:gone}"])
def test_what_was_not_leased_is_never_guessed(text: str) -> None:
    with pytest.raises(KeyError):
        fill(text, {("dir", "store"): "/run/store"})


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("plain", set()),
        ("${port:a}${port:a}", {("port", "a")}),
        ("${python} ${bin:x_y.z-1}", {PYTHON, ("bin", "x_y.z-1")}),
        ({"${dir:key}": [("${file:f}",)]}, {("dir", "key"), ("file", "f")}),
        ([1, None, True, {"n": 2}], set()),
    ],
)
def test_names_are_collected_at_any_depth(value: Any, names: set[tuple[str, str]]) -> None:
    assert names_in(value) == names


@pytest.mark.parametrize(
    ("value", "unknown"),
    [
        ("${port:a} ${dir:B} ${file:c.json} ${bin:d-e} ${python}", None),
        ("${host:a}", "${host:a}"),
        ("${python:3}", "${python:3}"),
        ("${port}", "${port}"),
        ("${port:}", "${port:}"),
        ("${port:1st}", "${port:1st}"),
        ("${dir:store", "${dir:store"),
        ({"deep": [{"${oops}": 1}]}, "${oops}"),
        ("${port:a} then ${Port:a}", "${Port:a}"),
        ("$HOME and $(pwd)", None),
    ],
)
def test_the_first_without_a_meaning_is_named(value: Any, unknown: str | None) -> None:
    assert unknown_in(value) == unknown


def test_leased_names_are_renamed_and_what_the_machine_has_is_not() -> None:
    value = {
        "${dir:d}": ["${port:p}", "h:${port:p}"],
        "env": ("${file:f}", "${bin:b}", "${python}", 7, None),
    }
    assert renamed(value, "child-") == {
        "${dir:child-d}": ["${port:child-p}", "h:${port:child-p}"],
        "env": ("${file:child-f}", "${bin:b}", "${python}", 7, None),
    }
    assert value["env"][0] == "${file:f}", "the value itself is left alone"


def test_renamed_names_of_two_children_never_meet() -> None:
    value = ["${port:p}", "${dir:d}", "${file:f}"]
    assert not names_in(renamed(value, "a-")) & names_in(renamed(value, "b-"))
