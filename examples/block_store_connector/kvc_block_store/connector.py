"""``BlockStoreConnector``: prefill writes each full block of a prompt, decode reads them back."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorBase_V1,
    KVConnectorMetadata,
)
from vllm.logger import init_logger
from vllm.v1.metrics.cache_hit_source import CacheHitSource

from kvc_block_store.keys import model_key, prompt_keys
from kvc_block_store.store import Layers, Store

logger = init_logger(__name__)


@dataclass(frozen=True)
class Move:
    """A block of a request that goes to or comes from the file named ``key``."""

    request: str
    block: int
    key: str


@dataclass
class Moves(KVConnectorMetadata):
    """What the workers have to do in one step."""

    loads: list[Move] = field(default_factory=list)
    saves: list[Move] = field(default_factory=list)


@dataclass
class Tracked:
    """A request that has been scheduled. ``saved``: leading blocks that need no more looking at.

    ``external``: tokens that the next step has to load.
    """

    keys: list[str]
    blocks: list[int] = field(default_factory=list)
    saved: int = 0
    external: int = 0


class BlockStoreConnector(KVConnectorBase_V1):
    """Extra config: ``store``, the folder. Saves as ``kv_producer``, loads as ``kv_consumer``."""

    _cache_hit_source = CacheHitSource.DISK

    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any) -> None:
        super().__init__(vllm_config, role, kv_cache_config)
        config, parallel = self._kv_transfer_config, vllm_config.parallel_config
        folder = config.get_from_extra_config("store", None)
        if not folder:
            raise ValueError("BlockStoreConnector needs kv_connector_extra_config.store, a folder")
        if len(kv_cache_config.kv_cache_groups) != 1:
            raise ValueError("BlockStoreConnector only supports models with one KV cache group")
        self._block_size = kv_cache_config.kv_cache_groups[0].kv_cache_spec.block_size
        self._saves, self._loads = config.is_kv_producer, config.is_kv_consumer
        self._rank = parallel.rank
        place = Path(folder) / model_key(vllm_config, self._block_size)
        self._store = Store(place, parallel.world_size)
        self._tracked: dict[str, Tracked] = {}
        self._caches: Layers = {}
        self._failed_blocks: set[int] = set()
        self._failed_requests: set[str] = set()

    # In the scheduler's process

    def get_num_new_matched_tokens(
        self, request: Any, num_computed_tokens: int
    ) -> tuple[int | None, bool]:
        """Tokens of leading blocks in the store beyond what is computed; never the last token."""
        if not self._loads:
            return 0, False
        stored = 0
        for key in prompt_keys(request, self._block_size)[: self._loadable(request)]:
            if not self._store.has(key):
                break
            stored += self._block_size
        return max(stored - num_computed_tokens, 0), False

    def _loadable(self, request: Any) -> int:
        """Full blocks below the last prompt token, whose logits have to be computed anyway."""
        return (len(request.prompt_token_ids or ()) - 1) // self._block_size

    def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int) -> None:
        """Also called for a request that was preempted: it begins anew, with other blocks."""
        tracked = Tracked(prompt_keys(request, self._block_size), external=num_external_tokens)
        self._tracked[request.request_id] = tracked

    def build_connector_meta(self, scheduler_output: Any) -> Moves:
        """Every step of a chunked prefill saves the blocks that it completes."""
        moves, scheduled = Moves(), scheduler_output.num_scheduled_tokens
        for new in scheduler_output.scheduled_new_reqs:
            self._advance(
                moves, new.req_id, new.block_ids, new.num_computed_tokens, scheduled[new.req_id]
            )
        cached = scheduler_output.scheduled_cached_reqs
        for name, blocks, computed in zip(
            cached.req_ids, cached.new_block_ids, cached.num_computed_tokens, strict=True
        ):
            self._advance(moves, name, blocks, computed, scheduled[name])
        return moves

    def _advance(self, moves: Moves, name: str, blocks: Any, computed: int, new: int) -> None:
        """``computed`` tokens are there before this step, loaded ones among them."""
        tracked = self._tracked.get(name)
        if tracked is None:
            return
        tracked.blocks += blocks[0] if blocks else []
        loaded = range(
            (computed - tracked.external) // self._block_size, computed // self._block_size
        )
        moves.loads += [Move(name, tracked.blocks[at], tracked.keys[at]) for at in loaded]
        tracked.external = 0
        if self._saves:
            full = min((computed + new) // self._block_size, len(tracked.keys))
            self._save(moves, name, tracked, full)

    def _save(self, moves: Moves, name: str, tracked: Tracked, full: int) -> None:
        """Also what was in the prefix cache, since the store may have lost it meanwhile."""
        known = {move.key for move in moves.saves}
        for at in range(tracked.saved, full):
            if tracked.keys[at] not in known and not self._store.has(tracked.keys[at]):
                moves.saves.append(Move(name, tracked.blocks[at], tracked.keys[at]))
        tracked.saved = max(tracked.saved, full)

    def request_finished(self, request: Any, block_ids: list[int]) -> tuple[bool, None]:
        """Everything is saved by then, so the blocks may be freed."""
        self._tracked.pop(request.request_id, None)
        return False, None

    # In the workers' processes

    def register_kv_caches(self, kv_caches: Layers) -> None:
        """One tensor a layer, whose first dimension is the block (vLLM 0.32.0)."""
        self._caches = kv_caches

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        """A block that cannot be read is reported, and the engine decides what becomes of it."""
        for move in self._moves().loads:
            try:
                self._put(move, self._store.read(move.key, self._rank))
            except (OSError, SafetensorError, KeyError, RuntimeError) as problem:
                logger.warning("block %s of the store cannot be loaded: %s", move.key, problem)
                self._store.forget(move.key, self._rank)
                self._failed_blocks.add(move.block)
                self._failed_requests.add(move.request)

    def _put(self, move: Move, layers: Layers) -> None:
        for name, cache in self._caches.items():
            if layers[name].shape != cache[move.block].shape:
                raise RuntimeError(f"layer {name} has shape {tuple(layers[name].shape)}")
            cache[move.block].copy_(layers[name])

    def wait_for_layer_load(self, layer_name: str) -> None:
        """Loads are over when ``start_load_kv`` returns."""

    def save_kv_layer(
        self, layer_name: str, kv_layer: torch.Tensor, attn_metadata: Any, **kwargs: Any
    ) -> None:
        """A block is saved with all its layers, once the last of them has run."""

    def wait_for_save(self) -> None:
        """A step in which a load failed has computed from wrong KV, which must not spread."""
        if self._failed_blocks:
            return
        for move in self._moves().saves:
            if move.request in self._failed_requests:
                continue
            layers = {name: self._get(cache, move.block) for name, cache in self._caches.items()}
            try:
                self._store.write(move.key, self._rank, layers)
            except OSError as problem:  # a store that is full is a miss, no reason to stop serving
                logger.warning("block %s cannot be stored: %s", move.key, problem)

    def _get(self, cache: torch.Tensor, block: int) -> torch.Tensor:
        # clone: on a CPU, .cpu() would be a view of the cache.
        return cache[block].detach().cpu().contiguous().clone()

    def get_finished(self, finished_req_ids: set[str]) -> tuple[None, None]:
        """Nothing goes on after a step."""
        self._failed_requests -= finished_req_ids
        return None, None

    def get_block_ids_with_load_errors(self) -> set[int]:
        """Those of this step."""
        failed, self._failed_blocks = self._failed_blocks, set()
        return failed

    def _moves(self) -> Moves:
        moves = self._get_connector_metadata()
        assert isinstance(moves, Moves)
        return moves
