"""Token counts of an answer, as the endpoints tell them."""

from __future__ import annotations

from typing import Any

from conformance.scripted.engine import Finished

Json = dict[str, Any]


def of(body: Json, ids: list[int], done: Finished) -> Json:
    """The counts that end an answer.

    What decode is told of P's cache hits stands for its own, as in vLLM 0.32.0.
    """
    params = body.get("kv_transfer_params") or {}
    told = params.get("remote_prefill_cached_tokens") if params.get("do_remote_prefill") else None
    cached = done.sources["local_cache_hit"] + done.sources["external_kv_transfer"]
    counts = counted(len(ids), sum(len(drawn.tokens) for drawn in done.choices))
    return {**counts, "prompt_tokens_details": {"cached_tokens": cached if told is None else told}}


def counted(prompt: int, written: int) -> Json:
    """The three that add up."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": written,
        "total_tokens": prompt + written,
    }


def together(each: list[Json]) -> Json:
    """Of several prompts in one request; vLLM 0.32.0 tells the cached tokens of the last alone."""
    prompt, written = (sum(u[n] for u in each) for n in ("prompt_tokens", "completion_tokens"))
    return {**each[-1], **counted(prompt, written)}
