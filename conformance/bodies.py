"""Request bodies: those whose answers can be compared, and what becomes of one on its way."""

from __future__ import annotations

from typing import Any

from conformance.client import Body, Endpoint

# A prefill leg asks for one token and must not carry what contradicts that, or what only makes
# sense for the answer the client sees.
_NOT_FOR_PREFILL = ("min_tokens", "min_completion_tokens", "stream_options", "stream", "n")


def prefill_body(endpoint: Endpoint, body: Body) -> Body:
    """A client's request as a router would send it to P: one token, once, not streamed."""
    one = {key: value for key, value in body.items() if key not in _NOT_FOR_PREFILL}
    one |= {"max_tokens": 1, "n": 1, "stream": False}
    if endpoint == "chat/completions":
        one["max_completion_tokens"] = 1
    return one


def unstreamed(body: Body) -> Body:
    """The body without what is an error in a request that does not stream."""
    return {key: value for key, value in body.items() if key not in ("stream", "stream_options")}


def greedy(**fields: Any) -> Body:
    """Fields every compared request shares: greedy, seeded, ids and log-probabilities back."""
    return {
        "temperature": 0.0,
        "seed": 0,
        "return_token_ids": True,
        "return_tokens_as_token_ids": True,
        **fields,
    }


def completion(prompt: list[int] | str, max_tokens: int = 12, **fields: Any) -> Body:
    """A ``/v1/completions`` body that can be compared."""
    return greedy(prompt=prompt, max_tokens=max_tokens, logprobs=2, **fields)


def chat(content: str, max_tokens: int = 12, **fields: Any) -> Body:
    """A ``/v1/chat/completions`` body of one user message that can be compared."""
    messages = [{"role": "user", "content": content}]
    return greedy(messages=messages, max_tokens=max_tokens, logprobs=True, top_logprobs=2, **fields)
