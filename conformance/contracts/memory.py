"""The KV cache of one instance, laid out and bound to attention layers by vLLM itself."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
from vllm.config import VllmConfig, set_current_vllm_config
from vllm.distributed.kv_transfer.kv_connector.utils import get_current_attn_backends
from vllm.model_executor.layers.attention import Attention
from vllm.platforms import current_platform
from vllm.v1.attention.backends.utils import (
    get_supported_kv_cache_layouts,
    resolve_kv_cache_layout,
)
from vllm.v1.core.kv_cache_utils import (
    get_kv_cache_configs,
    resolve_cache_hit_alignment_tokens,
    resolve_kv_cache_block_sizes,
)
from vllm.v1.kv_cache_interface import KVCacheConfig
from vllm.v1.worker.utils import allocate_kv_cache, bind_kv_cache

from conformance.contracts.tiny_model import BLOCK_SIZE, HEAD_SIZE, HEADS, LAYERS

CACHE_BYTES = 4 << 20


def attention_layers(config: VllmConfig) -> dict[str, Attention]:
    """The model's attention layers by name, registered in the config's forward context."""
    with set_current_vllm_config(config):
        layers = [
            Attention(
                HEADS,
                HEAD_SIZE,
                HEAD_SIZE**-0.5,
                num_kv_heads=HEADS,
                cache_config=config.cache_config,
                prefix=f"model.layers.{number}.self_attn.attn",
            )
            for number in range(LAYERS)
        ]
    return {layer.layer_name: layer for layer in layers}


def cache_config(config: VllmConfig, layers: dict[str, Attention]) -> KVCacheConfig:
    """A real ``KVCacheConfig``, by the steps of ``EngineCore._initialize_kv_caches``."""
    specs = {name: layer.get_kv_cache_spec(config) for name, layer in layers.items()}
    layouts = get_supported_kv_cache_layouts(get_current_attn_backends(config))
    resolve_kv_cache_layout(config, [[layout.name for layout in layouts]], specs.values())
    cache = get_kv_cache_configs(config, [specs], [CACHE_BYTES])[0]
    cache.kv_cache_layout = config.cache_config.kv_cache_layout
    config.cache_config.num_gpu_blocks = cache.num_blocks
    config.cache_config.block_size = BLOCK_SIZE
    sizes = resolve_kv_cache_block_sizes(cache, config)
    cache.hash_block_size = sizes[1]
    cache.cache_hit_alignment_tokens = resolve_cache_hit_alignment_tokens(cache, config, *sizes)
    return cache


class Memory:
    """Zeroed KV tensors, one view ``[block, head, token in block, channel]`` a layer."""

    def __init__(self, config: VllmConfig, cache: KVCacheConfig, pool: Any) -> None:
        self.device = torch.device(current_platform.device_type)
        layout = config.cache_config.get_resolved_kv_cache_layout()
        with pool or nullcontext():
            self.tensors = allocate_kv_cache(cache, self.device, layout, [BLOCK_SIZE])
        bind_kv_cache(self.tensors, config.compilation_config.static_forward_context, [])

    def read(self, layer: str, blocks: list[int], tokens: int) -> torch.Tensor:
        """A copy of the first ``tokens`` positions held by ``blocks``: [token, head, channel]."""
        at = slots(blocks, range(tokens))
        return self.tensors[layer][at // BLOCK_SIZE, :, at % BLOCK_SIZE].cpu()

    def write(self, layer: str, blocks: list[int], positions: range, kv: torch.Tensor) -> None:
        """Puts ``kv`` [token, head, channel] at the given positions of a request."""
        at = slots(blocks, positions)
        self.tensors[layer][at // BLOCK_SIZE, :, at % BLOCK_SIZE] = kv.to(self.device)

    def copy(self) -> dict[str, torch.Tensor]:
        """A copy of everything, to tell later what was touched."""
        return {name: tensor.clone() for name, tensor in self.tensors.items()}


def slots(blocks: list[int], positions: range) -> torch.Tensor:
    """Where the positions of a request lie in the cache: block id * block size + offset."""
    at = torch.tensor(list(positions), dtype=torch.int64)
    return torch.tensor(blocks, dtype=torch.int64)[at // BLOCK_SIZE] * BLOCK_SIZE + at % BLOCK_SIZE
