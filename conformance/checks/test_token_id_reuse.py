"""Token-ID reuse: D continues from the ids that P tokenized (vllm#48145).

``kv_transfer_params["prompt_token_ids"]`` spares D the rendering of the chat and makes sure that
both sides mean the same tokens. The ids are trusted: they decide the prompt, not ``messages``.
"""

from typing import Any

from conformance import expect
from conformance.case import Case
from conformance.pair import Ask, chat
from conformance.parity import compare
from conformance.registry import check

INVALID: dict[str, Any] = {
    "empty": [],
    "negative": [5, -1, 7],
    "non-integer": [5, 1.5, 7],
    "out-of-vocabulary": [5, 10**7, 7],
}
NAMES_THE_FIELD = ("prompt_token_ids", "vocabulary")


def _ask(case: Case, **more: Any) -> Ask:
    words = 2 * case.block
    return Ask(
        "chat with P's token ids",
        "chat/completions",
        lambda variant: chat(case.text(words, variant), max_tokens=12, **more),
        reuse_ids=True,
    )


@check("token-ids/same-answer", feature="token-id-reuse", cases=("unstreamed", "streamed"))
def test_ids_give_the_answer_of_the_messages(case: Case) -> None:
    """Decode given P's token ids answers as it does without them, and as the reference does."""
    ask = _ask(case)
    climbed = case.prove(ask.streamed() if case.name == "streamed" else ask)
    expect.equal(
        climbed.legs.prefill.prompt_token_ids,
        climbed.expected.prompt_token_ids,
        "prompt_token_ids of prefill, against the reference's",
    )
    rendered = case.pair.both_legs(
        Ask("the same chat without ids", "chat/completions", ask.body), ask.body(3)
    )
    reused = case.pair.both_legs(ask, ask.body(3))
    found = compare(rendered.decode, reused.decode, case.pair.model.dtype)
    case.saw("answer with ids against the answer without", found.describe())
    expect.true(found.equal, "ids and messages should give one answer", found.describe())


@check("token-ids/decide-the-prompt", feature="token-id-reuse", cases=("unstreamed", "streamed"))
def test_ids_decide_and_not_the_messages(case: Case) -> None:
    """Decode given the token ids of prompt A and the messages of prompt B answers A."""
    ask = _ask(case)
    ask = ask.streamed() if case.name == "streamed" else ask
    case.prove(ask)
    of_ids, of_messages = ask.body(3), ask.body(4)
    first, handed = case.pair.prefill_leg(ask.endpoint, of_ids)
    handed = handed.with_ids(first.prompt_token_ids)
    answer, _ = case.pair.decode_leg(ask.endpoint, of_messages, handed, stream=ask.stream)
    dtype = case.pair.model.dtype
    to_ids = compare(case.pair.expected(ask.endpoint, of_ids), answer, dtype)
    to_messages = compare(case.pair.expected(ask.endpoint, of_messages), answer, dtype)
    case.saw("answer against the reference's for the ids", to_ids.describe())
    case.saw("answer against the reference's for the messages", to_messages.describe())
    expect.true(to_ids.equal, "the answer should be that of the ids", to_ids.describe())
    expect.true(not to_messages.equal, "the messages should not decide", to_messages.describe())


@check("token-ids/messages-required", feature="token-id-reuse")
def test_messages_are_still_required(case: Case) -> None:
    """A decode request with token ids but without messages is refused as a client error."""
    ask = _ask(case)
    body = ask.body(0)
    first, handed = case.pair.prefill_leg(ask.endpoint, body)
    whole = handed.with_ids(first.prompt_token_ids).into(body)
    bare = {key: value for key, value in whole.items() if key != "messages"}
    refused = case.pair.decode.send(ask.endpoint, bare, handed.headers)
    case.saw("without messages", {"status": refused.status_code, "body": refused.text[:500]})
    expect.equal(refused.status_code, 400, "HTTP status without messages")
    expect.true("messages" in refused.text, "the error should name messages", refused.text[:300])
    _must_still_transfer(case)


@check(
    "token-ids/invalid",
    feature="token-id-reuse",
    cases=tuple(f"{kind}, {mode}" for kind in INVALID for mode in ("unstreamed", "streamed")),
    core_cases=("negative, unstreamed", "out-of-vocabulary, streamed"),
)
def test_invalid_ids_are_refused(case: Case) -> None:
    """Invalid token ids are a 400 that names the field, and leave the server healthy."""
    kind, mode = case.name.split(", ")
    ask = _ask(case)
    body = ask.body(0)
    _, handed = case.pair.prefill_leg(ask.endpoint, body)
    wrong = handed.with_param("prompt_token_ids", INVALID[kind])
    whole = {**wrong.into(body), "stream": mode == "streamed"}
    refused = case.pair.decode.send(ask.endpoint, whole, wrong.headers)
    case.saw(f"ids {INVALID[kind]}", {"status": refused.status_code, "body": refused.text[:500]})
    expect.equal(refused.status_code, 400, f"HTTP status for {kind} ids")
    expect.true(
        any(word in refused.text for word in NAMES_THE_FIELD),
        "the error should name prompt_token_ids",
        refused.text[:300],
    )
    _must_still_transfer(case)


@check("real-model/token-ids", feature="token-id-reuse", model="real")
def test_ids_are_reused_with_a_real_model(case: Case) -> None:
    """Token-ID reuse holds with a trained model's chat template and tokenizer."""
    question = "Who counted the crates?"
    ask = Ask(
        "chat with a trained model and P's token ids",
        "chat/completions",
        lambda variant: chat(f"{case.text(case.block, variant)}\n{question}", max_tokens=12),
        reuse_ids=True,
    )
    case.prove(ask)


def _must_still_transfer(case: Case) -> None:
    """Both servers are healthy, and a valid request of the same kind goes through."""
    for client in (case.pair.prefill, case.pair.decode):
        role = client.server.role
        expect.true(client.server.healthy(), f"the {role} server should be healthy", "not healthy")
    ask = _ask(case)
    expected = case.pair.expected(ask.endpoint, ask.body(5))
    answer = case.pair.both_legs(ask, ask.body(5)).decode
    found = compare(expected, answer, case.pair.model.dtype)
    case.saw("a valid request afterwards", found.describe())
    expect.true(found.equal, "a valid request afterwards should be answered", found.describe())
