"""What sets the endpoints apart on a request's way."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.bodies import conversations, message, prefill_body, response, shortest, tokens_in
from conformance.endpoints import Endpoint, path_of, requests_in, with_id, with_ids


def test_token_in_token_out_has_a_path_of_its_own() -> None:
    assert path_of("generate") == "/inference/v1/generate"
    assert path_of("chat/completions/batch") == "/v1/chat/completions/batch"


@pytest.mark.parametrize(
    ("endpoint", "body", "finished"),
    [
        ("completions", {"prompt": "one"}, 1),
        ("completions", {"prompt": [1, 2, 3]}, 1),
        ("completions", {"prompt": [[1, 2], [3]]}, 2),
        ("completions", {"prompt": ["a", "b", "c"], "n": 2}, 6),
        ("completions", {"prompt": []}, 1),
        ("chat/completions", {"messages": [{}, {}], "n": 3}, 3),
        ("chat/completions", {"messages": [{}], "n": None}, 1),
        ("chat/completions/batch", {"messages": [[{}], [{}]]}, 2),
        ("generate", {"token_ids": [1, 2], "sampling_params": {"n": 2}}, 2),
        ("responses", {"input": "a"}, 1),
        ("messages", {"messages": [{}, {}]}, 1),
    ],
)
def test_every_prompt_and_every_sample_finishes_by_itself(
    endpoint: Endpoint, body: dict[str, Any], finished: int
) -> None:
    assert requests_in(endpoint, body) == finished


def test_the_prefill_leg_asks_for_one_token_in_the_words_of_its_endpoint() -> None:
    assert prefill_body("responses", response("a", 9))["max_output_tokens"] == 1
    assert "max_tokens" not in prefill_body("responses", response("a", 9))
    assert prefill_body("messages", message("a", 9, stream=True))["max_tokens"] == 1
    assert "n" not in prefill_body("messages", message("a", 9))
    body = tokens_in([1, 2], 9)
    sampling = {**body["sampling_params"], "min_tokens": 4, "n": 2}
    one = prefill_body("generate", {**body, "sampling_params": sampling})["sampling_params"]
    assert (one["max_tokens"], one["n"], "min_tokens" in one) == (1, 1, False)
    assert body["sampling_params"]["max_tokens"] == 9
    batch = prefill_body("chat/completions/batch", conversations(["a", "b"], 9))
    assert (batch["max_tokens"], len(batch["messages"])) == (1, 2)


def test_the_prefill_leg_of_completions_and_chat_asks_for_one_choice() -> None:
    one = prefill_body("completions", {"prompt": "a", "n": 3, "stream": True, "min_tokens": 2})
    assert one == {"prompt": "a", "max_tokens": 1, "n": 1, "stream": False}
    one = prefill_body("chat/completions", {"messages": [], "max_completion_tokens": 7})
    assert (one["max_tokens"], one["max_completion_tokens"], one["n"]) == (1, 1, 1)


def test_the_shortest_form_of_a_request_keeps_all_else() -> None:
    assert shortest("messages", message("a", 9)) == {**message("a", 9), "max_tokens": 1}


def test_only_responses_take_the_request_id_from_the_body() -> None:
    headers = {"X-Request-Id": "r"}
    assert with_id("responses", {"input": "a"}, headers)["request_id"] == "r"
    assert "request_id" not in with_id("messages", {}, headers)
    assert "request_id" not in with_id("responses", {"input": "a"}, {})


def test_token_ids_go_where_an_endpoint_takes_them() -> None:
    assert with_ids("completions", {"prompt": "a"}, [1]) == {"prompt": [1]}
    assert with_ids("generate", {"token_ids": [2]}, [1]) == {"token_ids": [1]}
    assert with_ids("messages", {}, [1]) is None
