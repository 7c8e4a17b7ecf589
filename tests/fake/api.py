"""Bodies of the OpenAI API as vLLM 0.32.0 reads and writes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fake import choices
from fake.engine import Finished

Json = dict[str, Any]


def usage(ids: list[int], done: Finished) -> Json:
    """The counts that end an answer."""
    cached = done.sources["local_cache_hit"] + done.sources["external_kv_transfer"]
    written = sum(len(drawn.tokens) for drawn in done.choices)
    return {
        "prompt_tokens": len(ids),
        "completion_tokens": written,
        "total_tokens": len(ids) + written,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def whole(chat: bool, head: Json, body: Json, ids: list[int], done: Finished) -> Json:
    """An unstreamed answer."""
    answer = {**head, "object": "chat.completion" if chat else "text_completion"}
    answer |= {"usage": usage(ids, done), "kv_transfer_params": done.params or None}
    if chat and body.get("return_token_ids"):
        answer["prompt_token_ids"] = ids
    if chat and done.prompt_scores:
        answer["prompt_logprobs"] = done.prompt_scores
    return {**answer, "choices": choices.whole(chat, body, ids, done)}


def pieces(chat: bool, head: Json, body: Json, ids: list[int], done: Finished) -> Iterator[Json]:
    """A streamed answer, one event a token; roles come first, usage last."""
    head = {**head, "object": "chat.completion.chunk" if chat else "text_completion"}
    for number in range(len(done.choices) if chat else 0):
        role = {"role": "assistant", "content": ""}
        opening: Json = {"index": number, "delta": role, "finish_reason": None}
        told = {"prompt_token_ids": ids} if body.get("return_token_ids") and not number else {}
        yield {**head, "choices": [opening], **told}
    for choice in choices.pieces(chat, body, ids, done):
        yield {**head, "choices": [choice]}
    if (body.get("stream_options") or {}).get("include_usage"):
        yield {**head, "choices": [], "usage": usage(ids, done)}
