"""One badge a connector, for the README of whoever writes it.

Each is a document of shields.io's endpoint badge (https://shields.io/badges/endpoint-badge): a
repository that serves the folder can show it with ``https://img.shields.io/endpoint?url=…``.
"""

from __future__ import annotations

import json

from conformance.verdict import Verdict
from matrix import words
from matrix.model import Column
from matrix.parts import Standing

_COLOR: dict[Verdict, str] = {
    Verdict.PASS: "brightgreen",
    Verdict.FAIL: "red",
    Verdict.DEGRADED: "orange",
    Verdict.UNSUPPORTED: "yellowgreen",
    Verdict.NOT_RUN: "lightgrey",
    Verdict.ERROR: "lightgrey",
    Verdict.XFAIL: "yellow",
    Verdict.XPASS: "blue",
}
_NOT_ALL = "green"
_WITH_HELP = "yellowgreen"
_NO_NEWS = "lightgrey"


def badge(column: Column) -> dict[str, str | int | bool]:
    """The badge of a connector: green only for passes, and brightest for passes alone."""
    said, color = _row(column) if column.standing.has_row else _line(column)
    found: dict[str, str | int | bool] = {
        "schemaVersion": 1,
        "label": column.title,
        "message": said,
        "color": color,
    }
    return found | ({"isError": True} if column.verdict is Verdict.ERROR else {})


def text_of(column: Column) -> str:
    """The badge as the file it is served from."""
    return json.dumps(badge(column), ensure_ascii=False, indent=1) + "\n"


def _row(column: Column) -> tuple[str, str]:
    verdict = "" if column.verdict is Verdict.PASS else f", {words.label(column.verdict)}"
    shim = " through a shim" if column.shims else ""
    return words.counts(column) + verdict + shim, _color(column)


def _color(column: Column) -> str:
    if column.verdict is not Verdict.PASS:
        return _COLOR[column.verdict]
    if column.shims:
        return _WITH_HELP
    return _COLOR[Verdict.PASS] if column.passed == column.total else _NOT_ALL


def _line(column: Column) -> tuple[str, str]:
    if column.standing is Standing.NOT_TRIED:
        return ("not judged" if column.verdict is Verdict.ERROR else "not tried"), _NO_NEWS
    if column.verdict is Verdict.UNSUPPORTED:
        return "refused at start", _NO_NEWS
    return "does not start", _COLOR[column.verdict]
