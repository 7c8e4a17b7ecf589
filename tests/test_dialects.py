"""Answers of responses, messages and token-in/token-out in the one shape, streamed or not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from conformance.answer import Answer, Transcript, all_answers, from_response, spelled_as
from conformance.events import read_events
from conformance.parity import compare

Json = dict[str, Any]


def item(token: str, logprob: float, other: str, below: float) -> Json:
    """One entry of ``logprobs``, the chosen token being the likeliest."""
    tops = [{"token": token, "logprob": logprob}, {"token": other, "logprob": logprob - below}]
    return {"token": token, "logprob": logprob, "top_logprobs": tops}


ITEMS = [item(" a", -0.1, " x", 2.0), item(" b", -0.5, " y", 0.25)]
PART: Json = {"type": "output_text", "text": " a b", "logprobs": ITEMS}
RESPONSE: Json = {
    "status": "incomplete",
    "incomplete_details": {"reason": "max_output_tokens"},
    "output": [{"type": "message", "content": [PART]}],
    "input_messages": [{"tokens": [1, 2, 3]}],
    "output_messages": [{"tokens": [11, 12]}],
    "usage": {
        "input_tokens": 3,
        "output_tokens": 2,
        "input_tokens_details": {"cached_tokens": 2},
    },
    "kv_transfer_params": {"remote_host": "h"},
}
MESSAGE: Json = {
    "content": [{"type": "text", "text": " a b"}],
    "stop_reason": "max_tokens",
    "usage": {
        "input_tokens": 1,
        "output_tokens": 2,
        "cache_read_input_tokens": 2,
        "cache_creation_input_tokens": 4,
    },
    "kv_transfer_params": {"remote_host": "h"},
}


def wire(*events: Json | str) -> Iterator[str]:
    """Lines as a server sends them."""
    for event in events:
        if isinstance(event, dict):
            yield f"event: {event.get('type')}"
        yield f"data: {event if isinstance(event, str) else json.dumps(event)}"
        yield ""


def test_a_response_has_ids_scores_and_usage_in_the_names_of_chat() -> None:
    answer = from_response(RESPONSE, "responses")
    assert (answer.text, answer.token_ids, answer.prompt_token_ids) == (" a b", (11, 12), (1, 2, 3))
    assert answer.logprobs == (-0.1, -0.5)
    assert [round(margin, 6) for margin in answer.margins] == [2.0, 0.25]
    assert (answer.finish_reason, answer.seconds) == ("length", (-1, -1))
    assert (answer.prompt_tokens, answer.completion_tokens, answer.cached_tokens) == (3, 2, 2)
    assert answer.kv_transfer_params == {"remote_host": "h"}


def test_a_completed_response_stopped_and_another_says_why() -> None:
    done = {"status": "completed", "incomplete_details": None}
    assert from_response(done, "responses").finish_reason == "stop"
    cut = {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}
    assert from_response(cut, "responses").finish_reason == "content_filter"


def test_a_streamed_response_adds_up_and_ends_with_its_last_event() -> None:
    delta = "response.output_text.delta"
    events: list[Json] = [
        {"type": "response.created", "response": {"output": []}},
        {"type": delta, "delta": " a", "logprobs": ITEMS[:1]},
        {"type": delta, "delta": " b", "logprobs": ITEMS[1:]},
        {"type": "response.completed", "response": RESPONSE},
    ]
    seen = read_events(wire(*events), "responses")
    assert (seen.done, seen.after_done) == (True, 0)
    assert seen.answer() == from_response(RESPONSE, "responses")
    cut = read_events(wire(*events[:2]), "responses")
    assert (cut.done, cut.answer().text, cut.answer().token_ids) == (False, " a", ())
    assert read_events(wire(*events, events[0]), "responses").after_done == 1


def test_a_message_has_text_and_counts_what_was_cached() -> None:
    answer = from_response(MESSAGE, "messages")
    assert (answer.text, answer.token_ids, answer.finish_reason) == (" a b", (), "length")
    assert (answer.prompt_tokens, answer.completion_tokens, answer.cached_tokens) == (7, 2, 2)
    assert answer.usage["total_tokens"] == 9
    assert answer.kv_transfer_params == {"remote_host": "h"}


def test_a_streamed_message_adds_up_and_ends_with_its_last_event() -> None:
    delta = {"stop_reason": "end_turn"}
    events: list[Json] = [
        {"type": "message_start", "message": {}},
        {"type": "content_block_delta", "delta": {"text": " a"}},
        {"type": "content_block_delta", "delta": {"text": " b"}},
        {"type": "message_delta", "delta": delta, "usage": MESSAGE["usage"]},
        {"type": "message_stop"},
    ]
    seen = read_events(wire(*events), "messages")
    assert seen.done
    assert (seen.answer().text, seen.answer().finish_reason) == (" a b", "stop")
    assert seen.answer().usage == from_response(MESSAGE, "messages").usage
    cut = read_events(wire(*events[:2]), "messages")
    assert (cut.done, cut.answer().text, cut.answer().usage) == (False, " a", {})


def test_messages_are_compared_by_their_text_and_others_never() -> None:
    one = from_response(MESSAGE, "messages")
    other = from_response({**MESSAGE, "content": [{"text": " a c"}]}, "messages")
    assert compare(one, one, "float32").equal
    assert compare(one, one, "float32").describe() == "4 characters equal"
    assert not compare(one, other, "float32").equal
    assert compare(one, other, "float32").describe() == "difference at character 3 of 4"
    bare = from_response({"choices": [{"text": " a b"}]})
    assert not compare(bare, bare, "float32").equal
    empty = from_response({}, "messages")
    assert compare(empty, empty, "float32").describe().endswith("has no text")


def test_token_in_token_out_names_the_runner_up_by_its_id() -> None:
    tops = [{"token_id": 11, "logprob": -0.1}, {"token_id": 40, "logprob": -2.1}]
    scores = {"content": [{"token_id": 11, "logprob": -0.1, "top_logprobs": tops}]}
    choice = {"index": 0, "token_ids": [11], "logprobs": scores, "finish_reason": "length"}
    body = {"choices": [choice], "prompt_token_ids": [1, 2], "usage": {"prompt_tokens": 2}}
    answer = from_response(body, "generate")
    assert (answer.token_ids, answer.seconds, answer.prompt_token_ids) == ((11,), (40,), (1, 2))
    streamed = read_events(wire(body, "[DONE]"), "generate")
    assert streamed.done
    assert streamed.answer().token_ids == answer.token_ids
    assert streamed.answer().margins == answer.margins


def test_every_choice_is_an_answer_of_its_own() -> None:
    choices = [
        {"index": 1, "text": " b", "token_ids": [2], "prompt_token_ids": [8]},
        {"index": 0, "text": " a", "token_ids": [1], "prompt_token_ids": [7]},
    ]
    body: Json = {"choices": choices, "usage": {"prompt_tokens": 2}}
    answers = all_answers(body)
    assert [answer.text for answer in answers] == [" a", " b"]
    assert [answer.prompt_token_ids for answer in answers] == [(7,), (8,)]
    events = tuple({"choices": [choice]} for choice in choices)
    streamed = Transcript(events, done=True).answers()
    assert [(each.text, each.prompt_token_ids) for each in streamed] == [(" a", (7,)), (" b", (8,))]


def chat_twin(*items: Json) -> Json:
    """A chat whose ``logprobs`` tell an answer token by token."""
    text = "".join(str(entry["token"]) for entry in items)
    return {"choices": [{"message": {"content": text}, "logprobs": {"content": list(items)}}]}


def test_a_message_borrows_the_margins_of_the_same_chat_for_its_near_ties() -> None:
    twin = from_response(chat_twin(item(" a", -0.1, " x", 2.0), item(" b", -0.5, " yy", 0.0005)))
    message = spelled_as(from_response(MESSAGE, "messages"), twin)
    assert (message.names, message.runners) == ((" a", " b"), (" x", " yy"))

    def said(text: str) -> Answer:
        return from_response({**MESSAGE, "content": [{"text": text}]}, "messages")

    tie = compare(message, said(" a yy more"), "float32")
    assert tie.near_tie
    assert tie.equal
    assert tie.describe() == "near-tie at character 3 of 4"
    assert not compare(message, said(" a z"), "float32").equal, "no likely token"
    assert not compare(message, said(" x b"), "float32").equal, "the reference was sure"
    longer = compare(message, said(" a b c"), "float32")
    assert longer.describe() == "6 characters, but should be 4"


def test_a_chat_of_another_text_lends_nothing() -> None:
    message = from_response(MESSAGE, "messages")
    assert spelled_as(message, from_response(chat_twin(item(" other", -0.1, " x", 0.0)))) == message
    assert spelled_as(message, from_response({"choices": [{"logprobs": None}]})) == message


def test_a_near_tie_of_a_response_is_told_by_how_the_tokens_are_spelled() -> None:
    close = [ITEMS[0], item(" b", -0.5, " y", 0.0005)]

    def answer(items: list[Json], ids: list[int]) -> Answer:
        part = {**PART, "logprobs": items}
        output = [{"type": "message", "content": [part]}]
        body = {**RESPONSE, "output": output, "output_messages": [{"tokens": ids}]}
        return from_response(body, "responses")

    wanted = answer(close, [11, 12])
    second, third = item(" y", -0.5005, " b", -0.0005), item(" z", -3.0, " b", -2.5)
    assert compare(wanted, answer([ITEMS[0], second], [11, 40]), "float32").near_tie
    assert not compare(wanted, answer([ITEMS[0], third], [11, 41]), "float32").near_tie
