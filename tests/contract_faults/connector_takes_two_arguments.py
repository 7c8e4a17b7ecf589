from typing import Any

from contract_faults.right_connector import RightConnector


class ConnectorTakesTwoArguments(RightConnector):
    def __init__(self, vllm_config: Any, role: Any) -> None:
        super().__init__(vllm_config, role, None)
