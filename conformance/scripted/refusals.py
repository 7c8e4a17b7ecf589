"""Connectors that do not start on a CPU, with the last words that vLLM 0.32.0 has for them."""

from __future__ import annotations

from typing import Any

from conformance.scripted.log import die

LAST_WORDS = {
    "OffloadingConnector": (
        "NotImplementedError",
        "CPU Offloading is currently only supported on CUDA-alike and XPU GPUs",
    ),
    "SimpleCPUOffloadConnector": (
        "AttributeError",
        "'_StreamPlaceholder' has no attribute 'priority_range'",
    ),
}


def refuse(config: dict[str, Any]) -> None:
    """End, if ``--kv-transfer-config`` names one of them."""
    found = LAST_WORDS.get(config.get("kv_connector", ""))
    if found:
        die(found[1], found[0])
