"""What a server says of itself, and its tokenizer, without which nothing can be asked."""

from __future__ import annotations

from conformance import expect
from conformance.assumptions.assumption import assume
from conformance.assumptions.plain import Plain


@assume(
    "server/tokenize",
    source="entrypoints/serve/tokenize",
    relied_on=("client.py", "prompts.py", "leaning.py"),
    needs=(),
)
def _tokenize(plain: Plain) -> object:
    """``/tokenize`` gives the token ids of a text as ``tokens``, the same each time."""
    text = "the harbour, the valley"
    once, twice = plain.client.tokenize(text), plain.client.tokenize(text)
    expect.equal(twice, once, "token ids of the same text")
    numbers = bool(once) and all(type(token) is int for token in once)
    expect.true(numbers, "tokens should be a list of numbers", once)
    return once


@assume(
    "server/version",
    source="entrypoints/serve/instrumentator/basic.py",
    relied_on=("serving/attached.py",),
    needs=(),
)
def _version(plain: Plain) -> object:
    """``/version`` tells the version of vLLM as ``version``."""
    found = plain.client.page("/version").json()["version"]
    expect.true(isinstance(found, str) and bool(found), "version should be a text", found)
    return found


@assume(
    "server/models",
    source="entrypoints/openai/models/serving.py",
    relied_on=(
        *("serving/attached.py", "developer.py", "learned.py"),
        "checks/test_token_id_limits.py",
    ),
    needs=(),
)
def _models(plain: Plain) -> object:
    """``/v1/models`` lists the served names as ``id``, with ``max_model_len`` and ``root``."""
    cards = plain.client.page("/v1/models").json()["data"]
    mine = [card for card in cards if card["id"] == plain.client.server.model]
    expect.equal(len(mine), 1, "cards of the served model")
    length, root = mine[0]["max_model_len"], mine[0]["root"]
    expect.true(type(length) is int and length > 0, "max_model_len should be a number", length)
    expect.true(isinstance(root, str) and bool(root), "root should be a text", root)
    return {"max_model_len": length}
