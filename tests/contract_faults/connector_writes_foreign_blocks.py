from typing import Any

from contract_faults.right_connector import RightConnector


class ConnectorWritesForeignBlocks(RightConnector):
    """Writes one block more than it was given."""

    def put(self, layer: str, job: Any, kv: Any) -> None:
        super().put(layer, job, kv)
        self.caches[layer][job.blocks[-1] + 1] = 1.0
