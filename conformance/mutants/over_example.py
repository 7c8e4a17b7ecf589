"""The mended ExampleConnector with whatever fault is on.

Loaded by vLLM itself (``kv_connector_module_path``); nothing in vLLM is patched. The class has the
name of the shipped one, by which vLLM may look it up.
"""

from __future__ import annotations

from typing import Any

from conformance.mutants.fault import Fault, is_decode
from conformance.mutants.landed import Landed
from conformance.mutants.mended_example import PARTIAL, MendedExampleConnector
from conformance.mutants.switch import SETTING, switch_at


class ExampleConnector(MendedExampleConnector):
    """Asks the fault at each place where one can sit."""

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
        self._caches = kv_caches

    def get_num_new_matched_tokens(
        self, request: Any, num_computed_tokens: int
    ) -> tuple[int | None, bool]:
        found = super().get_num_new_matched_tokens(request, num_computed_tokens)
        if not self._decodes:
            return found
        return self._fault.claims(request, num_computed_tokens, found)

    def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int) -> None:
        def tell() -> None:
            super(ExampleConnector, self).update_state_after_alloc(
                request, blocks, num_external_tokens
            )

        if self._decodes:
            self._fault.allocated(request, tell)
        else:
            tell()

    def request_finished(self, request: Any, block_ids: list[int]) -> tuple[bool, Any]:
        answer = super().request_finished(request, block_ids)
        what = self._fault.freed if self._decodes else self._fault.handed
        return what(request, answer)

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        def start() -> None:
            super(ExampleConnector, self).start_load_kv(forward_context, **kwargs)

        coming: dict[str, list[int]] = {}
        for move in self._get_connector_metadata().requests:
            if not move.is_store:
                block = int(move.slot_mapping[0]) // self._block_size
                coming.setdefault(move.mm_hashes[1], []).append(block)
        if not self._decodes:
            start()
            return
        self._fault.load(list(coming), start)
        for request, blocks in coming.items():
            tokens = len(blocks) * self._block_size
            self._fault.landed(Landed(request, self._caches, blocks, tokens))

    def key_parts(self, request: Any, at: int) -> dict[str, Any]:
        return self._fault.key(super().key_parts(request, at))

    def _generate_filename_debug(self, layer_name: str, token_ids: Any, mm_hashes: Any) -> str:
        name = mm_hashes[0]
        if self._decodes:
            known = [found.name for found in self._place.iterdir() if found.suffix != PARTIAL]
            name = self._fault.folder(name, known)
        return super()._generate_filename_debug(layer_name, token_ids, [name])
