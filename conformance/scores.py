"""Log-probabilities as the endpoints write them, in one shape."""

from __future__ import annotations

import math
from typing import Any

Json = dict[str, Any]
Scores = tuple[tuple[float, ...], tuple[float, ...], tuple[int, ...]]


def scores_of(block: Json | None) -> Scores:
    """Log-probabilities, margins and runners-up from a choice's ``logprobs``."""
    if not block:
        return (), (), ()
    if block.get("content") is not None:
        return scores_of_items(block["content"])
    tops = [
        [(value, name) for name, value in (top or {}).items()]
        for top in block.get("top_logprobs") or ()
    ]
    return _ranked(tuple(value or 0.0 for value in block.get("token_logprobs") or ()), tops)


def scores_of_items(items: list[Json]) -> Scores:
    """The same from a list with an entry a token, as chat, responses and generate have it."""
    tops = [
        [(top["logprob"], _name(top)) for top in item.get("top_logprobs") or ()] for item in items
    ]
    return _ranked(tuple(item["logprob"] for item in items), tops)


def names_of_items(items: list[Json]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """How the tokens of such a list are spelled, and the second likeliest beside each."""
    tops = [
        sorted(item.get("top_logprobs") or (), key=lambda top: -float(top["logprob"]))
        for item in items
    ]
    runners = tuple(str(top[1].get("token", "")) if len(top) > 1 else "" for top in tops)
    return tuple(str(item.get("token", "")) for item in items), runners


def _ranked(chosen: tuple[float, ...], tops: list[list[tuple[float, str]]]) -> Scores:
    ranked = [sorted(top, key=lambda pair: pair[0], reverse=True) for top in tops]
    return chosen, tuple(map(_margin, ranked)), tuple(map(_second, ranked))


def _name(top: Json) -> str:
    """Token-in/token-out names tokens by their id alone."""
    return f"token_id:{top['token_id']}" if "token_id" in top else str(top.get("token"))


def _margin(ranked: list[tuple[float, str]]) -> float:
    return ranked[0][0] - ranked[1][0] if len(ranked) > 1 else math.inf


def _second(ranked: list[tuple[float, str]]) -> int:
    """Its id, as named with ``return_tokens_as_token_ids``."""
    name = ranked[1][1] if len(ranked) > 1 else ""
    number = name.removeprefix("token_id:")
    return int(number) if number != name and number.isdigit() else -1
