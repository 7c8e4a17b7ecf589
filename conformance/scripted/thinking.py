"""Reasoning of a server that was started with a reasoning parser.

Its template opens the reasoning, or opens and closes it where ``enable_thinking`` is off. Whether
an answer begins with reasoning is told from the prompt's token ids alone.
"""

from __future__ import annotations

from typing import Any

from conformance.scripted import model
from conformance.scripted.faults import Faults

START, END = "<think>", "</think>"
_OPEN = model.tokenize(f"<assistant> {START}")
# What a server is to think where its client sets no budget, in tokens.
_BUDGET = 16

_parsers: list[str] = []


def start_with(parser: str | None) -> None:
    """What the server's command line says of a parser."""
    _parsers.extend([parser] if parser else [])


def turn(body: dict[str, Any]) -> str:
    """What a template adds for the assistant's turn."""
    if not _parsers:
        return ""
    asked = (body.get("chat_template_kwargs") or {}).get("enable_thinking", True)
    return f" {START}" if asked else f" {START} {END}"


def is_open(ids: list[int]) -> bool:
    """Whether what follows these tokens is reasoning."""
    return bool(_parsers) and ids[-len(_OPEN) :] == _OPEN


def thought(body: dict[str, Any], state: int, faults: Faults) -> str:
    """Reasoning and its end, as long as it may be."""
    if "eager_grammar" in faults:
        return END
    return words(state, body.get("thinking_token_budget", _BUDGET)) + END


def words(state: int, count: int) -> str:
    """Free text of so many tokens."""
    found = [f" {model.number('thought', state, step):x}" for step in range(count)]
    return "".join(word[: model.LETTERS] for word in found)


def heard(body: dict[str, Any], faults: Faults) -> dict[str, Any]:
    """The request as the template gets to see it."""
    deaf = "thinks_anyway" in faults
    return {key: value for key, value in body.items() if not deaf or key != "chat_template_kwargs"}
