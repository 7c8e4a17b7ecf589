"""Log-probabilities of an answer's tokens, in the forms of both endpoints."""

from __future__ import annotations

import math
from typing import Any

from conformance import expect
from conformance.assumptions.assumption import ASKS, CHAT, COMPLETIONS, assume
from conformance.assumptions.plain import Plain

Json = dict[str, Any]
LEANS = ("scores.py", "parity.py", "likeliest.py", "answer.py")


@assume(
    "scores/completions",
    source=COMPLETIONS,
    relied_on=LEANS,
    needs=(*ASKS, "token-ids/completions"),
)
def _completions(plain: Plain) -> object:
    """``logprobs`` of a completion has, for each token, its name in ``tokens``, its value in
    ``token_logprobs``, and at least two of the likeliest by name in ``top_logprobs``."""
    choice = plain.first.raw["choices"][0]
    block, said = choice["logprobs"], len(choice["token_ids"])
    sizes = [len(block[name]) for name in ("tokens", "token_logprobs", "top_logprobs")]
    expect.equal(sizes, [said] * 3, "places in tokens, token_logprobs and top_logprobs")
    _are_values(block["token_logprobs"])
    for name, value, top in zip(
        block["tokens"], block["token_logprobs"], block["top_logprobs"], strict=True
    ):
        _is_likeliest(name, value, top)
    return block["token_logprobs"]


@assume(
    "scores/chat",
    source=CHAT,
    relied_on=(*LEANS, "checks/test_scores.py"),
    needs=(*ASKS, "token-ids/chat"),
)
def _chat(plain: Plain) -> object:
    """``logprobs.content`` of a chat has an entry for each token, with ``token``, ``logprob``
    and at least two of the likeliest in ``top_logprobs``."""
    choice = plain.chat.raw["choices"][0]
    items = choice["logprobs"]["content"]
    expect.equal(len(items), len(choice["token_ids"]), "entries in logprobs.content")
    _are_values([item["logprob"] for item in items])
    for item in items:
        tops = {top["token"]: top["logprob"] for top in item["top_logprobs"]}
        _is_likeliest(item["token"], item["logprob"], tops)
    return [item["logprob"] for item in items]


@assume(
    "scores/named-by-id",
    source="entrypoints/generate/base/serving.py",
    relied_on=("scores.py", "parity.py", "bodies.py"),
    needs=(*ASKS, "scores/completions", "scores/chat"),
)
def _named_by_id(plain: Plain) -> object:
    """With ``return_tokens_as_token_ids``, tokens in log-probabilities are named
    ``token_id:N``, in either endpoint."""
    completed, chatted = (answer.raw["choices"][0] for answer in (plain.first, plain.chat))
    named = [item["token"] for item in chatted["logprobs"]["content"]]
    for seen, choice in ((completed["logprobs"]["tokens"], completed), (named, chatted)):
        wanted = [f"token_id:{token}" for token in choice["token_ids"]]
        expect.equal(seen, wanted, "names of the tokens")
    return named


def _are_values(values: list[Any]) -> None:
    whole = all(isinstance(v, float | int) and math.isfinite(v) and v <= 0 for v in values)
    expect.true(whole, "log-probabilities should be numbers of at most 0", values)


def _is_likeliest(name: str, value: float, tops: Json) -> None:
    """A greedy token is first among the likeliest."""
    expect.true(len(tops) >= 2, "top_logprobs should have two tokens", tops)
    expect.equal(tops.get(name), value, f"log-probability of {name} in top_logprobs")
    expect.true(max(tops.values()) <= value, f"{name} should be the likeliest", tops)
