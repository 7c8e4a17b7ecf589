"""NixlConnector with whatever fault is on.

Loaded by vLLM itself (``kv_connector_module_path``); nothing in vLLM is patched. The class has the
name of the shipped one, by which vLLM may look it up.
"""

from __future__ import annotations

from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1.nixl import connector as shipped

from conformance.mutants.fault import Fault, is_decode
from conformance.mutants.landed import Landed
from conformance.mutants.switch import SETTING, switch_at


class NixlConnector(shipped.NixlPullConnector):  # type: ignore[misc]
    """Asks the fault at each place where one can sit."""

    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any) -> None:
        folder = vllm_config.kv_transfer_config.get_from_extra_config(SETTING, "")
        self._switch = switch_at(str(folder))
        super().__init__(vllm_config, role, kv_cache_config)
        self._decodes = is_decode(vllm_config)
        self._caches: dict[str, Any] = {}
        # Requests on their way here, with the blocks that their KV goes to.
        self._coming: dict[str, list[int]] = {}

    @property
    def _fault(self) -> Fault:
        return self._switch.fault

    def register_kv_caches(self, kv_caches: dict[str, Any]) -> None:
        super().register_kv_caches(kv_caches)
        self._caches = kv_caches

    def get_num_new_matched_tokens(self, request: Any, num_computed_tokens: int) -> Any:
        found = super().get_num_new_matched_tokens(request, num_computed_tokens)
        if not self._decodes:
            return found
        return self._fault.claims(request, num_computed_tokens, found)

    def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int) -> None:
        def tell() -> None:
            super(NixlConnector, self).update_state_after_alloc(
                request, blocks, num_external_tokens
            )

        if self._decodes:
            self._fault.allocated(request, tell)
        else:
            tell()

    def request_finished_all_groups(self, request: Any, block_ids: Any) -> Any:
        answer = super().request_finished_all_groups(request, block_ids)
        what = self._fault.freed if self._decodes else self._fault.handed
        return what(request, answer)

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        metadata = self._connector_metadata

        def start() -> None:
            self.connector_worker.start_load_kv(metadata)

        coming = {
            request: list(meta.local_block_ids[0])
            for request, meta in metadata.reqs_to_recv.items()
            if meta.local_block_ids and meta.local_block_ids[0]
        }
        self._coming |= coming
        if self._decodes:
            self._fault.load(list(coming), start)
        else:
            start()

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
