"""Variants: models and engine modes whose KV is not that of a dense Llama in its own dtype.

Every other check runs on a dense model with one kind of KV. What a connector assumes of it (one
group of blocks, heads to split, a block for every token, state that can be cut at any token) shows
only on another. A variant is a name under which a profile declares what it promises.
"""

from __future__ import annotations

from typing import Literal, get_args

Variant = Literal[
    "qk-norm",
    "moe",
    "mla",
    "sliding-window",
    "hybrid-ssm",
    "linear-attention",
    "multimodal",
    "encoder-decoder",
    "speculative-ngram",
    "fp8-kv-cache",
    "host-buffer",
    "cross-layer-blocks",
]
VARIANTS: tuple[Variant, ...] = get_args(Variant)
