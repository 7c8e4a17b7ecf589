"""What was asked for and did not come is missed, even where nobody compares it."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.answer import Answer, Transcript
from conformance.as_asked import answer_in, must_hold
from conformance.bodies import chat, completion, tokens_in
from conformance.errors import CheckFailed
from conformance.evidence import Outcome
from conformance.ladder import parity

BODY = completion([1, 2])
SCORES = {"token_logprobs": [-0.1], "top_logprobs": [{"a": -0.1, "b": -2.0}]}
WHOLE: dict[str, Any] = {"text": "a", "token_ids": [7], "logprobs": SCORES, "index": 0}


def without(*names: str, **changes: Any) -> dict[str, Any]:
    return {name: value for name, value in (WHOLE | changes).items() if name not in names}


def test_what_came_as_asked_is_read() -> None:
    found = {"choices": [WHOLE], "usage": {"prompt_tokens": 2}}
    assert answer_in(found, "decode", "completions", BODY).token_ids == (7,)


@pytest.mark.parametrize(
    ("choice", "missing"),
    [
        (without("token_ids"), "token ids"),
        (without(token_ids=None), "token ids"),
        (without("logprobs"), "log-probabilities"),
        (without("text", logprobs=None), "log-probabilities"),
    ],
)
def test_what_is_missing_is_named(choice: dict[str, Any], missing: str) -> None:
    with pytest.raises(CheckFailed, match=f"the decode server was asked for {missing}"):
        must_hold("decode", BODY, [choice])


def test_of_several_choices_each_is_looked_at() -> None:
    with pytest.raises(CheckFailed, match="choice 1"):
        must_hold("decode", BODY, [WHOLE, without("token_ids", index=1)])


def test_a_stream_tells_it_in_some_of_its_pieces() -> None:
    role = {"index": 0, "delta": {"role": "assistant", "content": ""}}
    last = {"index": 0, "delta": {"content": "a"}, "token_ids": [7], "logprobs": {"content": [1]}}
    must_hold("decode", chat("any"), [role, last])
    with pytest.raises(CheckFailed, match="log-probabilities"):
        must_hold("decode", chat("any"), [role, {**last, "logprobs": None}])


def test_an_answer_of_no_token_has_no_scores() -> None:
    must_hold("decode", BODY, [{"index": 0, "text": "", "token_ids": [], "logprobs": None}])


def test_what_was_not_asked_for_is_not_missed() -> None:
    must_hold("decode", {"prompt": "any"}, [{"text": "a"}])
    must_hold("decode", {"prompt": "any", "logprobs": False}, [{"text": "a"}])


def test_token_in_token_out_asks_for_scores_elsewhere() -> None:
    with pytest.raises(CheckFailed, match="log-probabilities"):
        must_hold("decode", tokens_in([1, 2]), [without("logprobs")])


@pytest.mark.parametrize("found", [{}, {"choices": []}, {"choices": None}, {"choices": [None]}])
def test_a_success_without_an_answer_is_no_answer(found: dict[str, Any]) -> None:
    with pytest.raises(CheckFailed, match="HTTP 200 from the decode server, but no answer"):
        answer_in(found, "decode", "completions", {})


def test_a_stream_has_to_come_to_its_end_once() -> None:
    Transcript(({},), done=True).must_be_whole()
    with pytest.raises(CheckFailed, match=r"after 1 events, without \[DONE\]"):
        Transcript(({},), done=False).must_be_whole()
    with pytest.raises(CheckFailed, match="without its last event"):
        Transcript(({},), done=False, endpoint="messages").must_be_whole()
    with pytest.raises(CheckFailed, match="2 events came after"):
        Transcript(({},), done=True, after_done=2).must_be_whole()


def answer(text: str, *ids: int) -> Answer:
    scores = tuple(-0.5 for _ in ids)
    return Answer(text, ids, scores, scores, "length", (1, 2), {}, seconds=ids)


def test_the_same_tokens_have_the_same_text() -> None:
    assert parity(answer("a b", 3, 4), answer("a b", 3, 4), "float32").outcome is Outcome.HELD
    step = parity(answer("a b", 3, 4), answer("", 3, 4), "float32")
    assert step.outcome is Outcome.BROKEN
    assert "not its text: it should be 'a b', but was ''" in step.summary


def test_past_a_near_tie_the_text_is_another() -> None:
    wanted, seen = answer("a b", 3, 4), answer("a c", 3, 5)
    near = Answer(**{**vars(wanted), "margins": (9.0, 0.0), "seconds": (0, 5)})
    assert parity(near, seen, "float32").outcome is Outcome.HELD


def test_counts_are_of_the_ids() -> None:
    assert answer("a b", 3, 4).counted == {
        "prompt_tokens": 2,
        "completion_tokens": 2,
        "total_tokens": 4,
    }
