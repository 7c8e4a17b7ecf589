"""Structured output: grammars are built on D from nothing, while P already spent its one token.

What breaks is the state between the legs: P builds a grammar for a token that is thrown away,
and D must start the same grammar at the first token (vllm#38911 is a relative, with tools).
"""

import json
import re
from collections.abc import Callable
from typing import Any

import jsonschema
import lark

from conformance import expect
from conformance.case import Case
from conformance.data import fixtures
from conformance.pair import Ask, chat
from conformance.registry import check

REGEX = r"(north|south|east|west)-[0-9]{3}-[a-f]{4}"
CHOICES = ["the harbour", "the valley", "the library", "the weather station"]
# Left-recursion free and finite, in the GBNF-like EBNF that vLLM 0.32.0 takes, and in lark's.
GRAMMAR = (
    'root ::= action " " number " " place\naction ::= "move" | "count" | "mend"\n'
    'number ::= [1-9] [0-9]\nplace ::= "crates" | "ropes" | "lamps"'
)
LARK = (
    'start: action " " number " " place\naction: "move" | "count" | "mend"\n'
    'number: /[1-9][0-9]/\nplace: "crates" | "ropes" | "lamps"'
)


def _schema(name: str = "crate") -> dict[str, Any]:
    path = fixtures() / "schemas" / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _response_format(name: str = "crate") -> dict[str, Any]:
    schema = {"name": name, "strict": True, "schema": _schema(name)}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _valid_json(text: str) -> None:
    jsonschema.validate(json.loads(text), _schema())


def _valid_label(text: str) -> None:
    jsonschema.validate(json.loads(text), _schema("label"))


def _valid_regex(text: str) -> None:
    expect.true(re.fullmatch(REGEX, text) is not None, f"text should match {REGEX}", text)


def _valid_choice(text: str) -> None:
    expect.true(text in CHOICES, f"text should be one of {CHOICES}", text)


def _valid_grammar(text: str) -> None:
    lark.Lark(LARK).parse(text)


KINDS: dict[str, tuple[Callable[[], dict[str, Any]], Callable[[str], None]]] = {
    "json-schema": (_response_format, _valid_json),
    "regex": (lambda: {"structured_outputs": {"regex": REGEX}}, _valid_regex),
    "choice": (lambda: {"structured_outputs": {"choice": CHOICES}}, _valid_choice),
    "grammar": (lambda: {"structured_outputs": {"grammar": GRAMMAR}}, _valid_grammar),
}


@check(
    "structured-output",
    feature="structured-output",
    cases=tuple(f"{kind}, {mode}" for kind in KINDS for mode in ("unstreamed", "streamed")),
)
def test_the_answer_obeys_its_grammar(case: Case) -> None:
    """A constrained answer through the pair is valid, complete, and the reference's."""
    kind, mode = case.name.split(", ")
    constraint, validate = KINDS[kind]
    ask = Ask(
        f"chat constrained by a {kind}",
        "chat/completions",
        lambda variant: chat(case.text(2 * case.block, variant), max_tokens=96, **constraint()),
    )
    _prove_valid(case, ask.streamed() if mode == "streamed" else ask, validate)


@check("real-model/json-schema", feature="structured-output", model="real")
def test_a_real_model_obeys_a_schema(case: Case) -> None:
    """A trained model's answer through the pair obeys a JSON schema and is the reference's."""
    question = "Describe one crate as JSON."
    ask = Ask(
        "chat with a trained model, constrained by a JSON schema",
        "chat/completions",
        lambda variant: chat(
            f"{case.text(case.block, variant)}\n{question}",
            max_tokens=48,
            **_response_format("label"),
        ),
    )
    _prove_valid(case, ask, _valid_label)


def _prove_valid(case: Case, ask: Ask, validate: Callable[[str], None]) -> None:
    climbed = case.prove(ask)
    case.saw(ask.subject, climbed.answer.text)
    expect.equal(climbed.answer.finish_reason, "stop", "finish_reason of a complete answer")
    try:
        validate(climbed.answer.text)
    except (ValueError, jsonschema.ValidationError, lark.exceptions.LarkError) as problem:
        expect.true(False, f"the answer should obey its grammar ({problem})", climbed.answer.text)
