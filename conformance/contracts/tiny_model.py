"""A two-layer Llama that exists only as a configuration: no weights are ever loaded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vllm.config import KVTransferConfig, VllmConfig
from vllm.engine.arg_utils import EngineArgs

LAYERS = 2
HEADS = 2
HEAD_SIZE = 32
VOCABULARY = 32000
# The CPU attention backend of vLLM 0.32.0 takes multiples of 32 only.
BLOCK_SIZE = 32
MAX_TOKENS = 512
LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": HEADS * HEAD_SIZE,
    "intermediate_size": 128,
    "num_attention_heads": HEADS,
    "num_key_value_heads": HEADS,
    "head_dim": HEAD_SIZE,
    "num_hidden_layers": LAYERS,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": MAX_TOKENS,
    "torch_dtype": "float32",
}


def vllm_config(folder: Path, transfer: Mapping[str, Any]) -> VllmConfig:
    """A real ``VllmConfig`` of the tiny model, resolved the way the server resolves its flags.

    ``transfer`` holds the fields of ``KVTransferConfig``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(LLAMA))
    return EngineArgs(
        model=str(folder),
        skip_tokenizer_init=True,
        dtype="float32",
        max_model_len=MAX_TOKENS,
        max_num_batched_tokens=MAX_TOKENS,
        max_num_seqs=8,
        block_size=BLOCK_SIZE,
        enforce_eager=True,
        async_scheduling=False,
        kv_transfer_config=KVTransferConfig(**transfer),
    ).create_engine_config()
