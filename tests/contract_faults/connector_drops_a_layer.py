from typing import Any

from contract_faults.right_connector import RightConnector


class ConnectorDropsALayer(RightConnector):
    def save_kv_layer(
        self, layer_name: str, kv_layer: Any, attn_metadata: Any, **kwargs: Any
    ) -> None:
        if "layers.1." not in layer_name:
            super().save_kv_layer(layer_name, kv_layer, attn_metadata, **kwargs)
