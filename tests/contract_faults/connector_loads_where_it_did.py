from typing import Any

from contract_faults.right_connector import RightConnector


class ConnectorLoadsWhereItDid(RightConnector):
    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any) -> None:
        super().__init__(vllm_config, role, kv_cache_config)
        self.first: dict[str, list[int]] = {}

    def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int) -> None:
        super().update_state_after_alloc(request, blocks, num_external_tokens)
        job = self.loads.get(request.request_id)
        if job:
            job.blocks = self.first.setdefault(request.request_id, job.blocks)
