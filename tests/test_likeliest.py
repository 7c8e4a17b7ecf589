"""Scores beside the chosen tokens: read from either endpoint, and compared within a tolerance."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.answer import Answer, from_response
from conformance.likeliest import Scores, differences, likeliest, of_prompt

WANTED: list[Scores] = [{"a": -0.1, "b": -2.5, "c": -4.0}]


def answer(choice: dict[str, Any], **more: Any) -> Answer:
    usage = {"prompt_tokens": 2, "completion_tokens": 1, "total_tokens": 3}
    whole = {"index": 0, "text": "x", "finish_reason": "length", **choice}
    return from_response({"choices": [whole], "usage": usage, **more})


def test_completions_name_the_likeliest_by_token() -> None:
    block = {"token_logprobs": [-0.1], "top_logprobs": [{"a": -0.1, "b": -2.5}, None]}
    assert likeliest(answer({"logprobs": block})) == [{"a": -0.1, "b": -2.5}, None]


def test_chat_lists_them_beside_each_token() -> None:
    tops = [{"token": "a", "logprob": -0.1}, {"token": "b", "logprob": -2.5}]
    item = {"token": "a", "logprob": -0.1, "top_logprobs": tops}
    seen = answer({"message": {"content": "a"}, "logprobs": {"content": [item]}})
    assert likeliest(seen) == [{"a": -0.1, "b": -2.5}]


def test_an_answer_without_scores_has_none() -> None:
    assert likeliest(answer({"logprobs": None})) == []
    assert of_prompt(answer({})) == []


def test_scores_of_the_prompt_are_the_choices_or_the_answers() -> None:
    scores = [None, {"5": {"logprob": -1.5, "rank": 3, "decoded_token": "y"}}]
    expected = [None, {"5": -1.5}]
    assert of_prompt(answer({"prompt_logprobs": scores})) == expected
    assert of_prompt(answer({}, prompt_logprobs=scores)) == expected


@pytest.mark.parametrize(
    "seen",
    [
        [{"a": -0.1, "b": -2.5, "c": -4.0}],
        [{"a": -0.1004, "b": -2.4996, "c": -4.0}],
        # As likely as the last one: which of both is told is chance.
        [{"a": -0.1, "b": -2.5, "d": -4.0005}],
    ],
)
def test_within_the_tolerance_they_are_alike(seen: list[Scores]) -> None:
    assert differences(WANTED, seen, "float32") == []


@pytest.mark.parametrize(
    "seen",
    [
        [{"a": -0.1, "b": -2.51, "c": -4.0}],
        [{"a": -0.1, "d": -2.5, "c": -4.0}],
        [{"a": -0.1, "b": -2.5}],
        [{"a": -0.1, "b": -2.5, "c": -4.0, "d": -4.0}],
        [None],
        [{}],
    ],
)
def test_beyond_it_the_place_is_named(seen: list[Scores]) -> None:
    (found,) = differences(WANTED, seen, "float32")
    assert found.startswith("place 0: ")


def test_missing_places_are_told() -> None:
    assert differences(WANTED, [], "float32") == ["0 places, but should be 1"]
    assert differences([None, *WANTED], [None, *WANTED], "float32") == []


def test_the_tolerance_is_that_of_the_dtype() -> None:
    seen: list[Scores] = [{"a": -0.15, "b": -2.5, "c": -4.0}]
    assert differences(WANTED, seen, "float32")
    assert differences(WANTED, seen, "bfloat16") == []
