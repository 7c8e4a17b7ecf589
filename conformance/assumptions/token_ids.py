"""Token ids in answers: what the prompt was, and what was said."""

from __future__ import annotations

from conformance import expect
from conformance.assumptions.assumption import CHAT, COMPLETIONS, assume
from conformance.assumptions.plain import FEW, SOME, Plain


@assume(
    "token-ids/completions",
    source=COMPLETIONS,
    relied_on=("answer.py", "parity.py", "pair.py", "prompts.py", "checks/test_token_id_reuse.py"),
)
def _completions(plain: Plain) -> object:
    """A list of token ids is the prompt as it is, and with ``return_token_ids`` a choice has it
    as ``prompt_token_ids``, and what it says as ``token_ids``."""
    choice = plain.first.raw["choices"][0]
    expect.equal(choice["prompt_token_ids"], plain.ids(FEW, "first"), "prompt_token_ids")
    _are_ids(choice["token_ids"])
    return choice["token_ids"]


@assume(
    "token-ids/chat",
    source=CHAT,
    relied_on=("answer.py", "pair.py", "client.py", "checks/test_token_id_reuse.py"),
)
def _chat(plain: Plain) -> object:
    """A chat's answer has ``prompt_token_ids`` beside its choices, which are what ``/tokenize``
    gives for the messages, and ``token_ids`` in each choice."""
    raw = plain.chat.raw
    rendered = plain.client.rendered(plain.chat_body["messages"])
    expect.equal(raw["prompt_token_ids"], rendered, "prompt_token_ids of the chat")
    _are_ids(raw["choices"][0]["token_ids"])
    return raw["choices"][0]["token_ids"]


def _are_ids(found: object) -> None:
    whole = isinstance(found, list) and all(type(token) is int for token in found)
    expect.true(whole, "token_ids should be a list of numbers", found)
    assert isinstance(found, list)
    expect.equal(len(found), SOME, "number of token_ids")
