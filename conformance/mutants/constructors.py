"""Connectors whose fault is in the constructor, and so cannot be switched on later."""

from __future__ import annotations

from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1.nixl import connector as shipped


class RefusesUnclearly(shipped.NixlPullConnector):  # type: ignore[misc]
    """Raises an error that does not say what is the matter."""

    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any) -> None:
        raise KeyError("kv")


class TakesTwoArguments(shipped.NixlPullConnector):  # type: ignore[misc]
    """Is as connectors were before vLLM passed them the KV cache's configuration."""

    def __init__(self, vllm_config: Any, role: Any) -> None:
        super().__init__(vllm_config, role, None)
