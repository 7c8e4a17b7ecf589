"""Bodies of the OpenAI API as vLLM 0.32.0 reads and writes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance.scripted import choices, usage
from conformance.scripted.engine import Finished

Json = dict[str, Any]


def whole(chat: bool, head: Json, body: Json, ids: list[int], done: Finished) -> Json:
    """An unstreamed answer."""
    answer = {**head, "object": "chat.completion" if chat else "text_completion"}
    answer |= {"usage": usage.of(body, ids, done), "kv_transfer_params": done.params or None}
    if chat and body.get("return_token_ids"):
        answer["prompt_token_ids"] = ids
    if chat and done.prompt_scores:
        answer["prompt_logprobs"] = done.prompt_scores
    return {**answer, "choices": choices.whole(chat, body, ids, done)}


def pieces(chat: bool, head: Json, body: Json, ids: list[int], done: Finished) -> Iterator[Json]:
    """A streamed answer, one event a token; roles come first, usage last or with every event."""
    head = {**head, "object": "chat.completion.chunk" if chat else "text_completion"}
    options = body.get("stream_options") or {}
    told = 0
    for event in _choices(chat, head, body, ids, done):
        told += _is_piece(event)
        counts = {"usage": usage.counted(len(ids), told)}
        yield {**event, **(counts if options.get("continuous_usage_stats") else {})}
    if options.get("include_usage"):
        yield {**head, "choices": [], "usage": usage.of(body, ids, done)}


def _choices(chat: bool, head: Json, body: Json, ids: list[int], done: Finished) -> Iterator[Json]:
    for number in range(len(done.choices) if chat else 0):
        role = {"role": "assistant", "content": ""}
        opening: Json = {"index": number, "delta": role, "finish_reason": None}
        told = {"prompt_token_ids": ids} if body.get("return_token_ids") and not number else {}
        yield {**head, "choices": [opening], **told}
    for choice in choices.pieces(chat, body, ids, done):
        yield {**head, "choices": [choice]}


def _is_piece(event: Json) -> bool:
    return "role" not in event["choices"][0].get("delta", {})
