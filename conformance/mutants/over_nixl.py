"""NixlConnector with whatever fault is on.

Loaded by vLLM itself (``kv_connector_module_path``); nothing in vLLM is patched. The class has the
name of the shipped one, by which vLLM may look it up.
"""

from __future__ import annotations

from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1.nixl import connector as shipped

from conformance.mutants.faulty import Faulty
from conformance.mutants.landed import Landed


class NixlConnector(Faulty, shipped.NixlPullConnector):  # type: ignore[misc]
    """Asks the fault at each place where one can sit."""

    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any) -> None:
        super().__init__(vllm_config, role, kv_cache_config)
        # Requests on their way here, with the blocks that their KV goes to.
        self._coming: dict[str, list[int]] = {}

    def request_finished_all_groups(self, request: Any, block_ids: Any) -> Any:
        return self._finish(request, super().request_finished_all_groups(request, block_ids))

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        metadata = self._connector_metadata

        def start() -> None:
            # Maybe some steps later, when the metadata of this one are no longer bound.
            self.connector_worker.start_load_kv(metadata)

        coming = {
            request: list(meta.local_block_ids[0])
            for request, meta in metadata.reqs_to_recv.items()
            if meta.local_block_ids and meta.local_block_ids[0]
        }
        self._coming |= coming
        self._load(list(coming), start)

    def get_transfer_results(self, finished_req_ids: set[str]) -> Any:
        results = super().get_transfer_results(finished_req_ids)
        for request in results.finished_recving:
            blocks = self._coming.pop(request, [])
            if blocks:
                self._fault.landed(self._landed(request, blocks))
        results.finished_recving = self._fault.received(set(results.finished_recving))
        results.finished_sending = self._fault.sent(set(results.finished_sending))
        return results

    def get_kv_connector_stats(self) -> Any:
        counted = super().get_kv_connector_stats()
        return self._fault.statistics(counted) if self._decodes else counted

    def _landed(self, request: str, blocks: list[int]) -> Landed:
        size = next(iter(self._caches.values())).shape[2]
        return Landed(request, self._caches, blocks, len(blocks) * size)
