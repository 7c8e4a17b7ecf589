"""``/v1/responses`` and ``/v1/messages``, which are chats in other words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance.scripted import choices, usage
from conformance.scripted.faults import Faults
from conformance.scripted.ways import Part, Way

Json = dict[str, Any]


class _Dialect(Way):
    ends_itself = True

    def __init__(self) -> None:
        super().__init__(chat=True)

    def split(self, body: Json, faults: Faults) -> list[Json]:
        made = {**body, **self.chat_fields(body), "return_token_ids": True}
        if "forgets_params" in faults:
            made.pop("kv_transfer_params", None)
        return [made]

    def chat_fields(self, body: Json) -> Json:
        """What a chat request has of it under other names."""
        raise NotImplementedError


class Responses(_Dialect):
    """OpenAI's newer API; token ids as in its ``*_messages``, scores by token."""

    def chat_fields(self, body: Json) -> Json:
        messages = [{"role": "user", "content": body["input"]}]
        limit = body.get("max_output_tokens")
        return {"messages": messages, "max_tokens": limit, "logprobs": True}

    def whole(self, head: Json, parts: list[Part]) -> Json:
        (part,) = parts
        drawn = part.done.choices[0]
        items = (choices.scores(True, part.body, [], drawn.tokens, None) or {})["content"]
        content = {"type": "output_text", "text": drawn.text, "logprobs": items}
        cut = drawn.reason == "length"
        return {
            **head,
            "status": "incomplete" if cut else "completed",
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "output": [{"type": "message", "content": [content]}],
            "input_messages": [{"tokens": part.ids}],
            "output_messages": [{"tokens": [token.id for token in drawn.tokens]}],
            "usage": _input_output(usage.of(part.body, part.ids, part.done)),
            "kv_transfer_params": part.done.params or None,
        }

    def pieces(self, head: Json, parts: list[Part]) -> Iterator[Json]:
        body = self.whole(head, parts)
        yield {"type": "response.created", "response": {**head, "output": []}}
        (content,) = body["output"][0]["content"]
        tokens = parts[0].done.choices[0].tokens
        for token, item in zip(tokens, content["logprobs"], strict=True):
            delta = {"type": "response.output_text.delta", "delta": token.text, "logprobs": [item]}
            yield delta
        yield {"type": "response.completed", "response": body}


class Messages(_Dialect):
    """Anthropic's API: text alone, and what was cached is no input."""

    def chat_fields(self, body: Json) -> Json:
        return {"max_tokens": body["max_tokens"]}

    def whole(self, head: Json, parts: list[Part]) -> Json:
        (part,) = parts
        return {
            **head,
            "type": "message",
            "content": [{"type": "text", "text": part.done.choices[0].text}],
            "stop_reason": _stop_reason(part),
            "usage": _read_and_written(usage.of(part.body, part.ids, part.done)),
            "kv_transfer_params": part.done.params or None,
        }

    def pieces(self, head: Json, parts: list[Part]) -> Iterator[Json]:
        body = self.whole(head, parts)
        yield {"type": "message_start", "message": {**head, "content": []}}
        for token in parts[0].done.choices[0].tokens:
            yield {"type": "content_block_delta", "delta": {"text": token.text}}
        delta = {"stop_reason": body["stop_reason"]}
        yield {"type": "message_delta", "delta": delta, "usage": body["usage"]}
        yield {"type": "message_stop"}


def _stop_reason(part: Part) -> str:
    return "max_tokens" if part.done.choices[0].reason == "length" else "end_turn"


def _input_output(counts: Json) -> Json:
    return {
        "input_tokens": counts["prompt_tokens"],
        "output_tokens": counts["completion_tokens"],
        "total_tokens": counts["total_tokens"],
        "input_tokens_details": counts["prompt_tokens_details"],
    }


def _read_and_written(counts: Json) -> Json:
    read = counts["prompt_tokens_details"]["cached_tokens"]
    return {
        "input_tokens": counts["prompt_tokens"] - read,
        "output_tokens": counts["completion_tokens"],
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": 0,
    }
