"""The hooks at which every mutant asks the fault that is on, whichever connector it is of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorBase_V1

from conformance.mutants.fault import Fault, Finished, is_decode
from conformance.mutants.switch import SETTING, switch_at


class Faulty(KVConnectorBase_V1):  # type: ignore[misc]
    """Stands before a connector among a mutant's bases; faults of claims are decode's alone."""

    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any) -> None:
        super().__init__(vllm_config, role, kv_cache_config)
        folder = vllm_config.kv_transfer_config.get_from_extra_config(SETTING, "")
        self._switch = switch_at(str(folder))
        self._decodes = is_decode(vllm_config)
        self._caches: dict[str, Any] = {}

    @property
    def _fault(self) -> Fault:
        return self._switch.fault

    def register_kv_caches(self, kv_caches: dict[str, Any]) -> None:
        super().register_kv_caches(kv_caches)
        self._caches = kv_caches

    def get_num_new_matched_tokens(
        self, request: Any, num_computed_tokens: int
    ) -> tuple[int | None, bool]:
        found = super().get_num_new_matched_tokens(request, num_computed_tokens)
        if self._decodes:
            found = self._fault.claims(request, num_computed_tokens, found)
        return found  # type: ignore[no-any-return]

    def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int) -> None:
        def tell() -> None:
            super(Faulty, self).update_state_after_alloc(request, blocks, num_external_tokens)

        if self._decodes:
            self._fault.allocated(request, tell)
        else:
            tell()

    def _finish(self, request: Any, answer: Finished) -> Finished:
        what = self._fault.freed if self._decodes else self._fault.handed
        return what(request, answer)

    def _load(self, requests: list[str], start: Callable[[], None]) -> None:
        if self._decodes:
            self._fault.load(requests, start)
        else:
            start()
