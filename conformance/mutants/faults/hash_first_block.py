"""A store that tells prompts apart by their first block."""

from __future__ import annotations

from typing import Any

from conformance.mutants.fault import UNRELATED, Fault


class HashFirstBlock(Fault):
    """A store files KV under the first block of the prompt alone."""

    over = ("example",)
    red = ("shared-prefix/parted",)
    green = (*UNRELATED, "transfer/completion", "length/2B")

    def key(self, parts: dict[str, Any]) -> dict[str, Any]:
        return {**parts, "tokens": parts["tokens"][: parts["block_size"]]}
