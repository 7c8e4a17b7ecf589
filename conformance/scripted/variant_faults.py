"""Names of the faults of models and modes that are not a dense model's."""

from __future__ import annotations

KNOWN = {
    "lost_state": "the last entry that decode needs is nothing, as a state that was not sent",
    "image_by_tokens": "KV is found by a prompt's tokens, whatever the image",
    "no_fp8": "no server keeps KV as fp8",
    "dies_of_dtype": "a server with a connector dies of fp8, and nobody can tell why",
    "ignores_dtype": "KV is kept as it always is, whatever --kv-cache-dtype says",
    "ignores_layout": "KV is laid out as it always is, whatever VLLM_KV_CACHE_LAYOUT says",
    "layer_by_layer": "no server lays KV out but layer by layer",
    "warns_not": "nothing foretells what a connector without HMA comes to",
    "serves_all": "every model starts with every connector",
    "no_drafts": "nothing is drafted",
}
