"""Answers of the endpoints beside completions and chat, where a server offers them."""

from __future__ import annotations

from conformance import expect
from conformance.answer import Answer
from conformance.assumptions.assumption import ASKS, assume
from conformance.assumptions.plain import SOME, Plain
from conformance.bodies import message, response, tokens_in

LEANS = ("dialects.py", "endpoints.py", "checks/test_endpoints.py")


@assume(
    "dialects/responses",
    source="entrypoints/openai/responses/protocol.py",
    relied_on=LEANS,
)
def _responses(plain: Plain) -> object:
    """An answer of ``/v1/responses`` has its text and scores in ``output``, the token ids of
    prompt and answer in ``*_messages``, and why it ended in ``incomplete_details``."""
    answer = plain.offered("responses", response(plain.prompts.text(20, "assumptions"), SOME))
    _is_whole(answer)
    expect.equal(answer.usage.get("prompt_tokens"), len(answer.prompt_token_ids), "input_tokens")
    return _counts(answer)


@assume(
    "dialects/messages",
    source="entrypoints/anthropic/protocol.py",
    relied_on=(*LEANS, "oracle.py", "parity.py"),
)
def _messages(plain: Plain) -> object:
    """An answer of ``/v1/messages`` has its text in ``content``, why it ended in
    ``stop_reason``, and counts in ``usage`` that leave out of the input what was cached."""
    body = message(plain.prompts.text(20, "assumptions"), SOME)
    answer = plain.offered("messages", body)
    expect.true(answer.finish_reason in ("length", "stop"), "stop_reason", answer.finish_reason)
    prompt = len(plain.client.rendered(body["messages"]))
    expect.equal(answer.usage.get("prompt_tokens"), prompt, "input tokens and cached ones")
    if answer.finish_reason == "length":
        expect.equal(answer.completion_tokens, SOME, "output_tokens")
    expect.true(isinstance(answer.raw["content"][0]["text"], str), "text", answer.raw["content"])
    return _counts(answer)


@assume(
    "dialects/generate",
    source="entrypoints/scale_out/token_in_token_out/protocol.py",
    relied_on=LEANS,
    needs=ASKS,
)
def _generate(plain: Plain) -> object:
    """An answer of ``/inference/v1/generate`` has token ids and scores by token id in its
    choices, and ``prompt_token_ids`` that are the ``token_ids`` of the request."""
    ids = plain.ids(9, "generate")
    answer = plain.offered("generate", tokens_in(ids, SOME))
    expect.equal(list(answer.prompt_token_ids), ids, "prompt_token_ids")
    _is_whole(answer)
    expect.true(min(answer.seconds) >= 0, "tokens should be named by token_id", answer.seconds)
    return _counts(answer)


def _is_whole(answer: Answer) -> None:
    said = len(answer.token_ids)
    expect.true(0 < said <= SOME, f"token ids of the answer should be 1 to {SOME}", said)
    expect.equal(len(answer.logprobs), said, "log-probabilities of the answer")
    known = all(margin >= 0 for margin in answer.margins) and len(answer.seconds) == said
    expect.true(known, "each token should have a runner-up", answer.seconds)
    expect.equal(answer.completion_tokens, said, "tokens of the answer in usage")
    expect.true(answer.finish_reason in ("length", "stop"), "why it ended", answer.finish_reason)


def _counts(answer: Answer) -> dict[str, object]:
    return {
        "finish_reason": answer.finish_reason,
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
    }
