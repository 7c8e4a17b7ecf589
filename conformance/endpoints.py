"""The endpoints that a request can go to, and what sets them apart on their way.

Names are paths below ``/v1``, except that of token-in/token-out. Facts are of vLLM 0.32.0,
``entrypoints``.
"""

from __future__ import annotations

from typing import Any, Literal

Endpoint = Literal[
    "completions",
    "chat/completions",
    "chat/completions/batch",
    "responses",
    "messages",
    "generate",
]
Body = dict[str, Any]

# What says how many tokens may be answered; of ``generate`` it is in ``sampling_params``.
LIMITS: dict[Endpoint, str] = {"responses": "max_output_tokens"}
REQUEST_ID = "X-Request-Id"


def path_of(endpoint: Endpoint) -> str:
    """The path on a server."""
    return "/inference/v1/generate" if endpoint == "generate" else f"/v1/{endpoint}"


def limited(endpoint: Endpoint, body: Body, tokens: int) -> Body:
    """The body with another limit of tokens to answer, and without a least number of them."""
    if endpoint == "generate":
        inner = {k: v for k, v in body["sampling_params"].items() if k != "min_tokens"}
        return {**body, "sampling_params": {**inner, "max_tokens": tokens}}
    whole = {k: v for k, v in body.items() if k not in ("min_tokens", "min_completion_tokens")}
    whole[LIMITS.get(endpoint, "max_tokens")] = tokens
    if "max_completion_tokens" in whole or endpoint == "chat/completions":
        whole["max_completion_tokens"] = tokens
    return whole


def requests_in(endpoint: Endpoint, body: Body) -> int:
    """Engine requests that one HTTP request becomes; each counts as finished by itself.

    One for each prompt or conversation, times ``n`` (``v1/engine/parallel_sampling.py``).
    """
    prompts = 1
    if endpoint == "completions":
        prompts = _prompts(body.get("prompt"))
    elif endpoint == "chat/completions/batch":
        prompts = len(body.get("messages") or [()])
    inner = body.get("sampling_params")
    return prompts * int((inner if isinstance(inner, dict) else body).get("n") or 1)


def with_id(endpoint: Endpoint, body: Body, headers: dict[str, str]) -> Body:
    """The body that carries the header's request id where the endpoint looks for it there alone.

    ``/v1/responses`` ignores ``X-Request-Id`` (``openai/responses/serving.py``), so a router of a
    connector that joins the legs by it has to put it into the body.
    """
    request = headers.get(REQUEST_ID)
    return {**body, "request_id": request} if request and endpoint == "responses" else body


def with_ids(endpoint: Endpoint, body: Body, ids: list[int]) -> Body | None:
    """The body for a prompt of these token ids; ``None`` where the endpoint takes none."""
    field = {"completions": "prompt", "generate": "token_ids"}.get(endpoint)
    return {**body, field: ids} if field else None


def _prompts(prompt: Any) -> int:
    several = isinstance(prompt, list) and bool(prompt) and isinstance(prompt[0], list | str)
    return len(prompt) if several else 1
