"""Answers of the endpoints that have no choices: ``/v1/responses`` and ``/v1/messages``.

Every function gives the fields of an :class:`~conformance.answer.Answer`, with the names of chat
completions for usage and finish reasons. Shapes as of vLLM 0.32.0, ``openai/responses`` and
``anthropic``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from conformance.scores import names_of_items, scores_of_items

Json = dict[str, Any]
# The event that ends a stream, where that is not [DONE].
LAST_EVENT = {"responses": "response.completed", "messages": "message_stop"}

_MESSAGE_REASONS = {"max_tokens": "length", "end_turn": "stop", "stop_sequence": "stop"}


def response(body: Json) -> Json:
    """From an unstreamed ``/v1/responses`` body.

    Token ids are there if it was asked for with ``enable_response_messages``.
    """
    parts = [part for item in body.get("output") or () for part in item.get("content") or ()]
    items = [item for part in parts for item in part.get("logprobs") or ()]
    return _response_fields(body, "".join(part.get("text") or "" for part in parts), items)


def response_events(events: Sequence[Json]) -> Json:
    """From the events of a streamed one: text and scores of the pieces, the rest of the last."""
    pieces = _of_type(events, "response.output_text.delta")
    items = [item for piece in pieces for item in piece.get("logprobs") or ()]
    last = _of_type(events, LAST_EVENT["responses"])
    whole = last[-1]["response"] if last else {}
    return _response_fields(whole, "".join(piece["delta"] for piece in pieces), items)


def message(body: Json) -> Json:
    """From an unstreamed ``/v1/messages`` body, which has neither token ids nor scores."""
    text = "".join(block.get("text") or "" for block in body.get("content") or ())
    return _message_fields(body, text, body.get("stop_reason"), body.get("usage"))


def message_events(events: Sequence[Json]) -> Json:
    """From the events of a streamed one."""
    deltas = [event["delta"] for event in _of_type(events, "content_block_delta")]
    closing = _of_type(events, "message_delta")
    reason = closing[-1]["delta"].get("stop_reason") if closing else None
    usage = closing[-1].get("usage") if closing else None
    return _message_fields({}, "".join(d.get("text") or "" for d in deltas), reason, usage)


def _response_fields(body: Json, text: str, items: list[Json]) -> Json:
    logprobs, margins, seconds = scores_of_items(items)
    names, runners = names_of_items(items)
    return {
        "text": text,
        "token_ids": _tokens(body.get("output_messages")),
        "logprobs": logprobs,
        "margins": margins,
        "finish_reason": _response_reason(body),
        "prompt_token_ids": _tokens(body.get("input_messages")),
        "usage": _response_usage(body.get("usage")),
        "kv_transfer_params": body.get("kv_transfer_params"),
        "raw": body,
        "seconds": seconds,
        "names": names,
        "runners": runners,
    }


def _message_fields(body: Json, text: str, reason: str | None, usage: Json | None) -> Json:
    return {
        "text": text,
        "token_ids": (),
        "logprobs": (),
        "margins": (),
        "finish_reason": _MESSAGE_REASONS.get(reason or "", reason),
        "prompt_token_ids": (),
        "usage": _message_usage(usage),
        "kv_transfer_params": body.get("kv_transfer_params"),
        "raw": body,
        "text_only": True,
    }


def _response_reason(body: Json) -> str | None:
    why = (body.get("incomplete_details") or {}).get("reason")
    if why == "max_output_tokens":
        return "length"
    return "stop" if body.get("status") == "completed" else why


def _response_usage(usage: Json | None) -> Json:
    if not usage:
        return {}
    details = usage.get("input_tokens_details") or {}
    return _usage(usage["input_tokens"], usage["output_tokens"], details.get("cached_tokens"))


def _message_usage(usage: Json | None) -> Json:
    """``input_tokens`` leaves out what was read from a cache or written to one."""
    if not usage:
        return {}
    read = usage.get("cache_read_input_tokens")
    prompt = usage["input_tokens"] + (read or 0) + (usage.get("cache_creation_input_tokens") or 0)
    return _usage(prompt, usage["output_tokens"], read)


def _usage(prompt: int, completion: int, cached: int | None) -> Json:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": None if cached is None else {"cached_tokens": cached},
    }


def _tokens(messages: Any) -> tuple[int, ...]:
    return tuple(token for entry in messages or () for token in entry.get("tokens") or ())


def _of_type(events: Sequence[Json], kind: str) -> list[Json]:
    return [event for event in events if event.get("type") == kind]
