"""What the attention layers would compute, and the batch metadata that vLLM builds for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from vllm.config import VllmConfig, set_current_vllm_config
from vllm.model_executor.layers.attention import Attention
from vllm.v1.attention.backend import CommonAttentionMetadata
from vllm.v1.kv_cache_interface import KVCacheConfig

from conformance.contracts.tiny_model import HEAD_SIZE, HEADS

CHANNELS = 2 * HEAD_SIZE  # key and value side by side
_PRIME = 1_000_003


def kv_of(tokens: Sequence[int], layer: int) -> torch.Tensor:
    """The KV that layer ``layer`` holds for a prompt: [token, head, channel], float32.

    Made up, but causal and a function of the tokens alone, like real KV: prompts that share a
    prefix share its KV, and no two positions, heads, channels or layers look alike. Never zero.
    """
    digest, digests = 17, []
    for token in tokens:
        digest = (digest * 31 + token + 1) % _PRIME
        digests.append(digest)
    where = torch.arange(1, HEADS * CHANNELS + 1, dtype=torch.float64).view(HEADS, CHANNELS)
    seed = torch.tensor(digests, dtype=torch.float64).view(-1, 1, 1) + layer * _PRIME
    return (torch.sin(seed * 0.137 + where * 0.731) + 2.0).to(torch.float32)


class Batch:
    """One step's requests, in the runner's order: block tables, tokens before, tokens new."""

    def __init__(self, tables: list[list[int]], before: list[int], new: list[int]) -> None:
        self.tables, self.before, self.new = tables, before, new

    def metadata(
        self,
        config: VllmConfig,
        cache: KVCacheConfig,
        layers: dict[str, Attention],
        slot_mapping: torch.Tensor,
    ) -> dict[str, Any]:
        """The backend's own metadata, by layer name."""
        group = cache.kv_cache_groups[0]
        backend = next(iter(layers.values())).get_attn_backend()
        with set_current_vllm_config(config):
            builder = backend.get_builder_cls()(
                group.kv_cache_spec, group.layer_names, config, slot_mapping.device
            )
            built = builder.build(0, self._common(slot_mapping))
        return dict.fromkeys(group.layer_names, built)

    def _common(self, slot_mapping: torch.Tensor) -> CommonAttentionMetadata:
        starts = torch.tensor([0, *self.new], dtype=torch.int32).cumsum(0, dtype=torch.int32)
        lengths = [a + b for a, b in zip(self.before, self.new, strict=True)]
        width = max(map(len, self.tables))
        table = torch.tensor([t + [0] * (width - len(t)) for t in self.tables], dtype=torch.int32)
        device = slot_mapping.device
        return CommonAttentionMetadata(
            query_start_loc=starts.to(device),
            query_start_loc_cpu=starts,
            seq_lens=torch.tensor(lengths, dtype=torch.int32, device=device),
            num_reqs=len(self.new),
            num_actual_tokens=sum(self.new),
            max_query_len=max(self.new),
            max_seq_len=max(lengths),
            block_table_tensor=table.to(device),
            slot_mapping=slot_mapping,
        )
