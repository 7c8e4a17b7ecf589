"""Assertion helpers with one message form: observed, expected, where."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

from conformance.errors import CheckFailed


def equal(seen: Any, expected: Any, what: str) -> None:
    """``what`` must equal the expected value."""
    __tracebackhide__ = True
    if seen != expected:
        raise CheckFailed(f"{what}={_short(seen)}, but should be {_short(expected)}")


def true(holds: bool, what: str, seen: Any) -> None:
    """A condition in words must hold; ``seen`` is what was observed instead."""
    __tracebackhide__ = True
    if not holds:
        raise CheckFailed(f"{what}, but was {_short(seen)}")


def not_empty(seen: Sized, what: str) -> None:
    """A collection that a check is about to look through must hold something."""
    __tracebackhide__ = True
    if not len(seen):
        raise CheckFailed(f"{what} is empty, but should hold something")


def _short(value: Any, limit: int = 300) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[:limit] + "…"
