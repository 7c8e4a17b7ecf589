"""Answers in one shape, from either endpoint, streamed or not."""

from __future__ import annotations

import math
from typing import Any

import pytest

from conformance.answer import Transcript, from_response

TOPS = [{" a": -0.1, " b": -2.1}, {" c": -0.5, " d": -0.75}]
COMPLETION: dict[str, Any] = {
    "choices": [
        {
            "text": " a c",
            "token_ids": [11, 12],
            "prompt_token_ids": [1, 2, 3],
            "finish_reason": "length",
            "logprobs": {"token_logprobs": [-0.1, -0.5], "top_logprobs": TOPS},
        }
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    "kv_transfer_params": {"remote_host": "h"},
}


def scores(*tops: dict[str, float]) -> dict[str, Any]:
    """A chat ``logprobs`` block whose first alternative is the chosen token."""
    items = [
        {
            "logprob": next(iter(top.values())),
            "top_logprobs": [{"logprob": v} for v in top.values()],
        }
        for top in tops
    ]
    return {"content": items}


CHAT: dict[str, Any] = {
    "choices": [
        {
            "message": {"role": "assistant", "content": " a c"},
            "token_ids": [11, 12],
            "finish_reason": "stop",
            "logprobs": scores(*TOPS),
        }
    ],
    "prompt_token_ids": [1, 2, 3],
    "usage": {"prompt_tokens": 3},
}


@pytest.mark.parametrize("body", [COMPLETION, CHAT])
def test_both_endpoints_give_one_shape(body: dict[str, Any]) -> None:
    answer = from_response(body)
    assert (answer.text, answer.token_ids) == (" a c", (11, 12))
    assert answer.logprobs == (-0.1, -0.5)
    assert answer.margins == pytest.approx((2.0, 0.25))
    assert (answer.prompt_token_ids, answer.prompt_tokens) == ((1, 2, 3), 3)
    assert answer.finish_reason == body["choices"][0]["finish_reason"]
    assert answer.kv_transfer_params == body.get("kv_transfer_params")
    assert answer.raw == body


def test_the_margin_is_between_the_two_likeliest_whatever_was_chosen() -> None:
    body = {"choices": [{"logprobs": scores({"chosen": -3.0, "best": -0.5, "next": -1.5})}]}
    answer = from_response(body)
    assert answer.logprobs == (-3.0,)
    assert answer.margins == pytest.approx((1.0,))


def test_a_lone_alternative_has_an_infinite_margin() -> None:
    block = {"token_logprobs": [-0.1, None], "top_logprobs": [{"a": -0.1}, None]}
    answer = from_response({"choices": [{"text": "x", "logprobs": block}]})
    assert answer.margins == (math.inf, math.inf)
    assert answer.logprobs == (-0.1, 0.0)


def test_an_answer_without_extras_is_empty_not_broken() -> None:
    answer = from_response({"choices": [{"message": {"content": None}, "logprobs": None}]})
    assert (answer.text, answer.token_ids, answer.logprobs, answer.margins) == ("", (), (), ())
    assert (answer.prompt_tokens, answer.usage, answer.kv_transfer_params) == (0, {}, None)


def test_prompt_tokens_fall_back_to_the_ids() -> None:
    assert from_response({**COMPLETION, "usage": None}).prompt_tokens == 3


def pieces(kind: str) -> tuple[dict[str, Any], ...]:
    """The same answer in four events, as each endpoint streams it."""

    def text(part: str) -> dict[str, Any]:
        return {"delta": {"content": part}} if kind == "chat" else {"text": part}

    def block(top: dict[str, float]) -> dict[str, Any]:
        chosen = [next(iter(top.values()))]
        return scores(top) if kind == "chat" else {"token_logprobs": chosen, "top_logprobs": [top]}

    opening = {"delta": {"role": "assistant", "content": ""}} if kind == "chat" else text("")
    first = {**text(" a"), "token_ids": [11], "logprobs": block(TOPS[0])}
    last = {**text(" c"), "token_ids": [12], "logprobs": block(TOPS[1]), "finish_reason": "stop"}
    ids = {"prompt_token_ids": [1, 2, 3]}
    return (
        {"choices": [opening], **ids} if kind == "chat" else {"choices": [{**opening, **ids}]},
        {"choices": [first], "usage": {"prompt_tokens": 3, "completion_tokens": 1}},
        {"choices": [last], "usage": None},
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
    )


@pytest.mark.parametrize("kind", ["chat", "completions"])
def test_pieces_add_up_to_the_unstreamed_answer(kind: str) -> None:
    answer = Transcript(pieces(kind), done=True).answer()
    whole = from_response(CHAT)
    assert (answer.text, answer.token_ids) == (whole.text, whole.token_ids)
    assert (answer.logprobs, answer.margins) == (whole.logprobs, whole.margins)
    assert answer.prompt_token_ids == whole.prompt_token_ids
    assert answer.finish_reason == "stop"
    assert answer.usage == {"prompt_tokens": 3, "completion_tokens": 2}


def test_the_usage_event_carries_no_choice() -> None:
    transcript = Transcript(pieces("chat"), done=True)
    assert transcript.choice_events == list(transcript.events[:3])


def test_a_stream_that_was_cut_adds_up_to_what_came() -> None:
    answer = Transcript(pieces("chat")[:2], done=False).answer()
    assert (answer.text, answer.token_ids, answer.finish_reason) == (" a", (11,), None)
    assert Transcript((), done=False).answer().token_ids == ()


def test_the_second_likeliest_token_is_known_by_its_id() -> None:
    tops = [{"token_id:5": -0.1, "token_id:7": -2.1}, {"token_id:8": -0.75, "token_id:9": -0.5}]
    logprobs = {"token_logprobs": [-0.1, -0.75], "top_logprobs": tops}
    named = {"choices": [{**COMPLETION["choices"][0], "logprobs": logprobs}]}
    assert from_response(named).seconds == (7, 8)
    assert from_response(COMPLETION).seconds == (-1, -1)
