"""Request bodies: those whose answers can be compared, and what becomes of one on its way."""

from __future__ import annotations

from typing import Any

from conformance.endpoints import Body, Endpoint, limited

# A prefill leg asks for one token and must not carry what contradicts that, or what only makes
# sense for the answer the client sees.
_NOT_FOR_PREFILL = ("stream_options", "stream", "n")
_HAVE_CHOICES = ("completions", "chat/completions")


def prefill_body(endpoint: Endpoint, body: Body) -> Body:
    """A client's request as a router would send it to P: one token, once, not streamed."""
    one = {key: value for key, value in body.items() if key not in _NOT_FOR_PREFILL}
    one = {**limited(endpoint, one, 1), "stream": False}
    if endpoint == "generate":
        one["sampling_params"]["n"] = 1
    return {**one, "n": 1} if endpoint in _HAVE_CHOICES else one


def shortest(endpoint: Endpoint, body: Body) -> Body:
    """The same request for one token."""
    return limited(endpoint, body, 1)


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


def response(content: str, max_tokens: int = 12, **fields: Any) -> Body:
    """A ``/v1/responses`` body of one user message that can be compared, token ids included."""
    return {
        "input": content,
        "max_output_tokens": max_tokens,
        "temperature": 0.0,
        "seed": 0,
        "store": False,
        "enable_response_messages": True,
        "include": ["message.output_text.logprobs"],
        "top_logprobs": 2,
        **fields,
    }


def message(content: str, max_tokens: int = 12, **fields: Any) -> Body:
    """A ``/v1/messages`` body of one user message; only its text can be compared."""
    messages = [{"role": "user", "content": content}]
    return {"messages": messages, "max_tokens": max_tokens, "temperature": 0.0, **fields}


def told_by_token(body: Body) -> Body:
    """The chat that a ``/v1/messages`` body is, asked for its answer's tokens and their scores."""
    same = {name: body[name] for name in ("messages", "max_tokens", "temperature")}
    return {**same, "logprobs": True, "top_logprobs": 2}


def tokens_in(prompt: list[int], max_tokens: int = 12, **fields: Any) -> Body:
    """A ``/inference/v1/generate`` body that can be compared. ``fields``: beside the sampling."""
    sampling = {"temperature": 0.0, "seed": 0, "max_tokens": max_tokens, "logprobs": 2}
    return {"token_ids": prompt, "sampling_params": sampling, "return_token_ids": True, **fields}


def conversations(contents: list[str], max_tokens: int = 12, **fields: Any) -> Body:
    """A ``/v1/chat/completions/batch`` body: one user message a conversation."""
    body = chat("", max_tokens, **fields)
    return {**body, "messages": [[{"role": "user", "content": each}] for each in contents]}
