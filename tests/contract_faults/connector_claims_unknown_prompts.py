from contract_faults.right_connector import RightConnector


class ConnectorClaimsUnknownPrompts(RightConnector):
    """Decode takes every prompt for saved."""

    def stored(self, key: str) -> bool:
        return super().stored(key) or not self._kv_transfer_config.is_kv_producer
