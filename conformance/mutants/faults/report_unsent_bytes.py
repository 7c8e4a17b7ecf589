"""The record of bytes grows, and nothing moves."""

from __future__ import annotations

from typing import Any

from conformance.mutants.fault import UNRELATED, Fault, Found


class ReportUnsentBytes(Fault):
    """Decode recomputes, and its connector reports the bytes that it would have fetched."""

    over = ("nixl",)
    red = ("transfer/completion", "transfer/chat")
    green = UNRELATED

    def __init__(self) -> None:
        self._owed = 0

    def claims(self, request: Any, computed: int, found: Found) -> Found:
        self._owed += found[0] or 0
        return 0, False

    def statistics(self, counted: Any) -> Any:
        from vllm.distributed.kv_transfer.kv_connector.v1.nixl.stats import NixlKVConnectorStats

        if not self._owed:
            return counted
        made = counted or NixlKVConnectorStats()
        lasted_s, blocks = 0.001, 1
        made.data["transfer_duration"].append(lasted_s)
        made.data["post_duration"].append(lasted_s)
        made.data["bytes_transferred"].append(1024 * self._owed)
        made.data["num_descriptors"].append(blocks)
        self._owed = 0
        return made
