"""A store that does not know which model KV is of."""

from __future__ import annotations

from typing import Any

from conformance.mutants.fault import Fault


class IgnoreModel(Fault):
    """A store files KV without the model that it is of, and gives an adapter's to its base."""

    over = ("example",)
    red = (
        "isolation/adapter/adapter first",
        "isolation/adapter/base first",
        "isolation/model/decode",
        "isolation/model/prefill",
    )
    green = ("transfer/completion",)

    def key(self, parts: dict[str, Any]) -> dict[str, Any]:
        return {**parts, "model": None}
