from typing import Any

from contract_faults.right_connector import RightConnector


class ConnectorRefusesCaches(RightConnector):
    """Knows another layout of the KV cache than vLLM's."""

    def register_kv_caches(self, kv_caches: Any) -> None:
        for cache in kv_caches.values():
            _keys, _values = cache.unbind(5)
