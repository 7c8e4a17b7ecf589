"""The mended ExampleConnector with whatever fault is on.

Loaded by vLLM itself (``kv_connector_module_path``); nothing in vLLM is patched. The class has the
name of the shipped one, by which vLLM may look it up.
"""

from __future__ import annotations

from typing import Any

from conformance.mutants.faulty import Faulty
from conformance.mutants.landed import Landed
from conformance.mutants.mended_example import PARTIAL, MendedExampleConnector


class ExampleConnector(Faulty, MendedExampleConnector):
    """Asks the fault at each place where one can sit."""

    def request_finished(self, request: Any, block_ids: list[int]) -> tuple[bool, Any]:
        return self._finish(request, super().request_finished(request, block_ids))

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        def start() -> None:
            super(ExampleConnector, self).start_load_kv(forward_context, **kwargs)

        coming: dict[str, list[int]] = {}
        for move in self._get_connector_metadata().requests:
            if not move.is_store:
                block = int(move.slot_mapping[0]) // self._block_size
                coming.setdefault(move.mm_hashes[1], []).append(block)
        self._load(list(coming), start)
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
