"""Bodies of the OpenAI API as vLLM 0.32.0 reads and writes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fake import model
from fake.engine import Finished
from fake.model import VOCABULARY, Token

Json = dict[str, Any]
_IDS_FIELD = "kv_transfer_params.prompt_token_ids"


class BadRequest(Exception):
    """Answered with HTTP 400."""

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.body = {
            "error": {
                "message": message,
                "type": "BadRequestError",
                "param": param,
                "code": 400,
            }
        }


def prompt_of(chat: bool, body: Json) -> list[int]:
    """The prompt's token ids. Raises :class:`BadRequest`."""
    if not chat:
        prompt = body["prompt"]
        ids = model.tokenize(prompt) if isinstance(prompt, str) else prompt
        return _in_vocabulary(ids, "prompt")
    if "messages" not in body:
        raise BadRequest(
            "[{'type': 'missing', 'loc': ('body', 'messages'), 'msg': 'Field required'}]"
        )
    reused = (body.get("kv_transfer_params") or {}).get("prompt_token_ids")
    if reused is None:
        return model.render(body["messages"])
    if (
        not isinstance(reused, list)
        or not reused
        or any(type(i) is not int or i < 0 for i in reused)
    ):
        raise BadRequest(
            "`kv_transfer_params['prompt_token_ids']` must be a non-empty list of non-negative "
            "integers.",
            _IDS_FIELD,
        )
    return _in_vocabulary(reused, _IDS_FIELD)


def _in_vocabulary(ids: list[int], param: str) -> list[int]:
    wrong = next((token for token in ids if not 0 <= token < VOCABULARY), None)
    if wrong is not None:
        raise BadRequest(f"Token id {wrong} is out of vocabulary", param)
    return ids


def usage(ids: list[int], done: Finished) -> Json:
    """The counts that end an answer."""
    cached = done.sources["local_cache_hit"] + done.sources["external_kv_transfer"]
    return {
        "prompt_tokens": len(ids),
        "completion_tokens": len(done.tokens),
        "total_tokens": len(ids) + len(done.tokens),
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def whole(chat: bool, head: Json, body: Json, ids: list[int], done: Finished) -> Json:
    """An unstreamed answer."""
    text = "".join(token.text for token in done.tokens)
    choice: Json = {"index": 0, "finish_reason": done.reason, "stop_reason": None}
    choice["logprobs"] = _logprobs(chat, body, done.tokens)
    choice |= {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
    answer = {**head, "object": "chat.completion" if chat else "text_completion"}
    answer |= {"usage": usage(ids, done), "kv_transfer_params": done.params or None}
    if body.get("return_token_ids"):
        choice["token_ids"] = [token.id for token in done.tokens]
        (answer if chat else choice)["prompt_token_ids"] = ids
    return {**answer, "choices": [choice]}


def pieces(chat: bool, head: Json, body: Json, ids: list[int], done: Finished) -> Iterator[Json]:
    """A streamed answer, one event a token; the role comes first, usage last."""
    head = {**head, "object": "chat.completion.chunk" if chat else "text_completion"}
    with_ids = bool(body.get("return_token_ids"))
    if chat:
        role = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
        yield {**head, "choices": [role], **({"prompt_token_ids": ids} if with_ids else {})}
    for number, token in enumerate(done.tokens):
        last = number == len(done.tokens) - 1
        choice: Json = {"index": 0, "finish_reason": done.reason if last else None}
        choice["logprobs"] = _logprobs(chat, body, [token])
        choice |= {"delta": {"content": token.text}} if chat else {"text": token.text}
        if with_ids:
            choice["token_ids"] = [token.id]
            choice |= {"prompt_token_ids": ids} if not chat and number == 0 else {}
        yield {**head, "choices": [choice]}
    if (body.get("stream_options") or {}).get("include_usage"):
        yield {**head, "choices": [], "usage": usage(ids, done)}


def _logprobs(chat: bool, body: Json, tokens: list[Token]) -> Json | None:
    if not body.get("logprobs"):
        return None
    names = [_name(body, token.id, token.text) for token in tokens]
    others = [_name(body, token.other, f"{token.text}?") for token in tokens]
    if chat:
        return {
            "content": [
                {
                    "token": name,
                    "logprob": token.logprob,
                    "top_logprobs": [
                        {"token": name, "logprob": token.logprob},
                        {"token": other, "logprob": token.other_logprob},
                    ],
                }
                for name, other, token in zip(names, others, tokens, strict=True)
            ]
        }
    return {
        "tokens": names,
        "token_logprobs": [token.logprob for token in tokens],
        "top_logprobs": [
            {name: token.logprob, other: token.other_logprob}
            for name, other, token in zip(names, others, tokens, strict=True)
        ],
        "text_offset": [0] * len(tokens),
    }


def _name(body: Json, number: int, text: str) -> str:
    return f"token_id:{number}" if body.get("return_tokens_as_token_ids") else text
