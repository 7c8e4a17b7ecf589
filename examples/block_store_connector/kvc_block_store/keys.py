"""Names of blocks: two prompts share a name exactly as far as they share their KV."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def model_key(vllm_config: Any, block_size: int) -> str:
    """Names all that makes KV of one instance unreadable for another."""
    model, parallel = vllm_config.model_config, vllm_config.parallel_config
    what = (
        model.model,
        model.revision,
        model.quantization,
        str(model.dtype),
        vllm_config.cache_config.cache_dtype,
        model.hf_config.to_json_string(),
        block_size,
        parallel.tensor_parallel_size,
        parallel.pipeline_parallel_size,
    )
    return _digest("", what)


def prompt_keys(request: Any, block_size: int) -> list[str]:
    """A name for each full block of a request's prompt.

    A block's KV depends on every token up to it, so each name holds the one before. The chain
    begins with what else changes KV (an adapter) or may not be shared (``cache_salt``). A prompt
    that is given as embeddings has no names.
    """
    tokens = request.prompt_token_ids
    if tokens is None or getattr(request, "prompt_embeds", None) is not None:
        return []
    lora = request.lora_request
    key = _digest("", (request.cache_salt, lora and (lora.lora_name, lora.lora_path)))
    keys = []
    for start in range(0, len(tokens) // block_size * block_size, block_size):
        end = start + block_size
        key = _digest(key, (list(tokens[start:end]), _media_in(request, start, end)))
        keys.append(key)
    return keys


def _media_in(request: Any, start: int, end: int) -> list[tuple[str, int]]:
    """Images and the like that begin in a block: their tokens are placeholders, alike for all."""
    places = [(one.identifier, one.mm_position.offset) for one in request.mm_features]
    return [(name, offset) for name, offset in places if start <= offset < end]


def _digest(before: str, what: Any) -> str:
    return hashlib.sha256(f"{before}{json.dumps(what)}".encode()).hexdigest()[:40]
