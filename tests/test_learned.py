"""Requests that are cut to the oracle's answer: a prompt that shows nothing is never used."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

from conformance import learned
from conformance.answer import Answer, from_response
from conformance.case import Case
from conformance.errors import NotHere, SuiteError


@dataclass
class Scripted:
    """A case whose oracle answers with its prompt, one token more if it is told to."""

    source: str = "nowhere"
    cards: list[dict[str, Any]] = field(default_factory=list)
    seen: list[object] = field(default_factory=list)

    @property
    def pair(self) -> Any:
        decode = SimpleNamespace(page=lambda _: httpx.Response(200, json={"data": self.cards}))
        model = SimpleNamespace(dtype="float32", source=self.source)
        return SimpleNamespace(decode=decode, model=model, expected=self.expected)

    def ids(self, length: int, *key: object) -> list[int]:
        return [length, *(cast("int", part) for part in key)]

    def saw(self, what: str, seen: object) -> None:
        self.seen.append((what, seen))

    def expected(self, _: str, body: dict[str, Any]) -> Answer:
        ids = [*body["prompt"], *body.get("more", ())][: body["max_tokens"]]
        texts = body.get("texts", [str(token) for token in ids])
        scores = {"tokens": texts, "token_logprobs": [-0.1] * len(ids), "top_logprobs": []}
        choice = {"index": 0, "text": "1ä2", "finish_reason": "length", "token_ids": ids}
        return from_response({"choices": [{**choice, "logprobs": scores}], "usage": {}})


def case(**fields: Any) -> Case:
    return cast("Case", Scripted(**fields))


BODY: dict[str, Any] = {"prompt": [1, 2], "max_tokens": 4}


def test_a_field_matters_if_the_answer_is_another_without_it() -> None:
    assert learned.matters(case(), "completions", {**BODY, "more": [3]}, "more")
    assert not learned.matters(case(), "completions", {**BODY, "other": [3]}, "other")


def test_a_field_that_changes_nothing_is_the_harnesss_trouble() -> None:
    with pytest.raises(SuiteError, match="answers the same without other"):
        learned.must_matter(case(), "completions", {**BODY, "other": 1}, "other")


def test_the_first_token_is_that_of_a_shorter_answer() -> None:
    assert learned.first_token(case(), BODY) == 1


def test_pieces_end_where_they_do_not_add_up_to_the_text() -> None:
    # Two tokens are half a letter each.
    assert learned.pieces(case(), {**BODY, "texts": ["1", "�", "�", "2"]}) == ["1"]


def test_only_the_proof_looks_for_a_prompt_that_shows_something() -> None:
    body = learned.bodies(
        case(), 9, lambda ids: {"prompt": ids}, lambda made: made["prompt"][2] == 3, "is third"
    )
    assert [body(variant)["prompt"] for variant in (0, 1)] == [[9, 0, 3], [9, 1, 0]]


def test_a_prompt_that_is_not_to_be_had_is_told() -> None:
    with pytest.raises(SuiteError, match="of 16 prompts none is so: choose another model"):
        learned.sought(lambda attempt: {"prompt": attempt}, lambda _: False, "is so")


@pytest.mark.parametrize(("written", "expected"), [(2, 2), ([7, 8], 7)])
def test_the_end_of_sequence_is_the_models(tmp_path: Path, written: Any, expected: int) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"eos_token_id": written}))
    assert learned.end_of_sequence(case(source=str(tmp_path))) == expected
    assert learned.end_of_sequence(case(cards=[{"root": str(tmp_path)}])) == expected


@pytest.mark.parametrize("cards", [[], [{"id": "model"}], [{"root": "/nowhere"}]])
def test_a_model_out_of_reach_tells_no_end_of_sequence(cards: list[dict[str, Any]]) -> None:
    with pytest.raises(NotHere, match="which token ends an answer is not known"):
        learned.end_of_sequence(case(cards=cards))
