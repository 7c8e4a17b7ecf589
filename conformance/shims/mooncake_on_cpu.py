"""Mooncake's connectors on a host without an accelerator.

Loaded by vLLM itself (``kv_connector_module_path``) in place of the classes as shipped, which ask
torch for the current accelerator's index and die where there is none (vLLM 0.32.0,
``mooncake_connector.py``: "Cannot access accelerator device when none is available"). Here, and
only while the connector is constructed, that question is answered with 0. Nothing else changes:
the Mooncake engine moves the bytes, over tcp.

The names are those of the classes as shipped: MultiConnector looks a child's class up by its name
among the registered ones when the child reports statistics, and the server ends if it is not there
(vLLM 0.32.0, ``multi_connector.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from vllm.distributed.kv_transfer.kv_connector.v1.mooncake import mooncake_connector
from vllm.distributed.kv_transfer.kv_connector.v1.mooncake.store import connector


@contextmanager
def _device_zero() -> Iterator[None]:
    if torch.accelerator.is_available():
        yield
        return
    shipped = torch.accelerator.current_device_index
    torch.accelerator.current_device_index = lambda: 0
    try:
        yield
    finally:
        torch.accelerator.current_device_index = shipped


class MooncakeConnector(mooncake_connector.MooncakeConnector):  # type: ignore[misc]
    """MooncakeConnector, constructed with device index 0."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        with _device_zero():
            super().__init__(*args, **kwargs)


class MooncakeStoreConnector(connector.MooncakeStoreConnector):  # type: ignore[misc]
    """MooncakeStoreConnector, constructed with device index 0."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        with _device_zero():
            super().__init__(*args, **kwargs)
