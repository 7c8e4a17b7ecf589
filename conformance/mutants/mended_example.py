"""A store that works: ExampleConnector with its known defects mended.

A mutant needs a connector that is right but for one fault, and ExampleConnector as shipped is not
(``reports/FINDINGS.md``: it saves only the first chunk of a prompt, shows a prompt before all of
its layers are written, and files it under its tokens alone). Here each whole block of a prompt is a
folder of its own, filed under all that its KV depends on, and shown once every layer is in it.

Prefill (``kv_producer``) stores and decode (``kv_consumer``) loads, on one rank, for models whose
layers all attend to the whole prompt. vLLM 0.32.0.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from vllm.distributed.kv_transfer.kv_connector.v1.example_connector import (
    ExampleConnector,
    ExampleConnectorMetadata,
    ReqMeta,
)

PARTIAL = ".partial"


@dataclass
class Live:
    """A request that has blocks: how many tokens its next step loads, and blocks dealt with."""

    request: Any
    external: int
    blocks: list[int] = field(default_factory=list)
    saved: int = 0


class MendedExampleConnector(ExampleConnector):  # type: ignore[misc]
    """Stores whole blocks as they are computed, and loads those that decode lacks."""

    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any) -> None:
        super().__init__(vllm_config, role, kv_cache_config)
        self._model = vllm_config.model_config.model
        self._live: dict[str, Live] = {}

    def get_num_new_matched_tokens(
        self, request: Any, num_computed_tokens: int
    ) -> tuple[int | None, bool]:
        """Stored blocks that follow what decode has, without the last token's."""
        known = end = num_computed_tokens // self._block_size
        last = (request.num_tokens - 1) // self._block_size
        if self._kv_transfer_config.is_kv_consumer:
            last = min(last, self._prompt_blocks(request))
            while end < last and (self._place / self._key(request, end)).is_dir():
                end += 1
        return (end - known) * self._block_size, False

    def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int) -> None:
        """A request begins, or is taken up again, with a block table of its own."""
        self._live[request.request_id] = Live(request, num_external_tokens)

    def build_connector_meta(self, scheduler_output: Any) -> ExampleConnectorMetadata:
        """What is loaded before this step's computation, and stored after it."""
        meta, scheduled = ExampleConnectorMetadata(), scheduler_output.num_scheduled_tokens
        for new in scheduler_output.scheduled_new_reqs:
            self._plan(meta, new.req_id, list(new.block_ids[0]), new.num_computed_tokens, scheduled)
        old = scheduler_output.scheduled_cached_reqs
        for name, added, computed in zip(
            old.req_ids, old.new_block_ids, old.num_computed_tokens, strict=True
        ):
            known = self._live[name].blocks if name in self._live else []
            blocks = [] if name in old.resumed_req_ids else known
            self._plan(meta, name, [*blocks, *(added[0] if added else ())], computed, scheduled)
        return meta

    def _plan(
        self, meta: Any, name: str, blocks: list[int], computed: int, scheduled: dict[str, int]
    ) -> None:
        """``computed``: tokens whose KV is there before this step's computation, once loaded."""
        live, size = self._live.get(name), self._block_size
        if live is None:
            return
        live.blocks = blocks
        for at in range((computed - live.external) // size, computed // size):
            self._add(meta, live, at, self._key(live.request, at), is_store=False)
        live.external = 0
        full = min((computed + scheduled[name]) // size, self._prompt_blocks(live.request))
        for at in range(live.saved, full) if self._kv_transfer_config.is_kv_producer else ():
            key = self._key(live.request, at)
            if not (self._place / key).is_dir():
                self._add(meta, live, at, f"{key}.{uuid.uuid4().hex}{PARTIAL}", is_store=True)
        live.saved = max(live.saved, full)

    def _add(self, meta: Any, live: Live, at: int, folder: str, *, is_store: bool) -> None:
        slots = torch.arange(self._block_size) + live.blocks[at] * self._block_size
        # The only thing that reaches a file's name on the worker beside tokens.
        named = [folder, live.request.request_id]
        meta.requests.append(ReqMeta(torch.empty(0), slots, is_store, named))

    def request_finished(self, request: Any, block_ids: list[int]) -> tuple[bool, Any]:
        """Nothing is sent later, so its blocks are free."""
        self._live.pop(request.request_id, None)
        finished: tuple[bool, Any] = super().request_finished(request, block_ids)
        return finished

    def wait_for_save(self) -> None:
        """Show what was stored in this step: all layers of it are there."""
        for move in self._get_connector_metadata().requests:
            if move.is_store:
                partial = self._place / move.mm_hashes[0]
                whole = self._place / partial.name.partition(".")[0]
                if not whole.exists():
                    partial.rename(whole)

    def key_parts(self, request: Any, at: int) -> dict[str, Any]:
        """Everything that a block's KV depends on."""
        end = (at + 1) * self._block_size
        adapter = request.lora_request
        return {
            "tokens": list(request.prompt_token_ids[:end]),
            "block": at,
            "block_size": self._block_size,
            "salt": request.cache_salt,
            "model": (self._model, adapter.lora_name if adapter else None),
        }

    def _key(self, request: Any, at: int) -> str:
        return hashlib.sha256(repr(self.key_parts(request, at)).encode()).hexdigest()[:32]

    def _prompt_blocks(self, request: Any) -> int:
        return int(request.num_prompt_tokens // self._block_size)

    @property
    def _place(self) -> Path:
        return Path(self._storage_path)

    def _generate_filename_debug(self, layer_name: str, token_ids: Any, mm_hashes: Any) -> str:
        folder = self._place / mm_hashes[0]
        if folder.name.endswith(PARTIAL):
            folder.mkdir(exist_ok=True)
        return os.path.join(folder, f"{layer_name}.safetensors")
