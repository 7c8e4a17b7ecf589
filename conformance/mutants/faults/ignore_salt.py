"""A store that knows no cache_salt."""

from __future__ import annotations

from typing import Any

from conformance.mutants.fault import UNRELATED, Fault


class IgnoreSalt(Fault):
    """A store files KV without the request's cache_salt."""

    over = ("example",)
    red = ("isolation/salt/decode",)
    green = (*UNRELATED, "transfer/completion", "shared-prefix/cold/1 block")

    def key(self, parts: dict[str, Any]) -> dict[str, Any]:
        return {**parts, "salt": None}
