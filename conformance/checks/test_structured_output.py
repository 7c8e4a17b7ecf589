"""Structured output: grammars are built on D from nothing, while P already spent its one token.

What breaks is the state between the legs: P builds a grammar for a token that is thrown away,
and D must start the same grammar at the first token (vllm#38911 is a relative, with tools).
"""

import json
import re
from collections.abc import Callable
from typing import Any

import jiter
import jsonschema
import lark

from conformance import expect
from conformance.answer import Answer
from conformance.case import Case
from conformance.client import Body
from conformance.data import fixtures
from conformance.leaning import away_from
from conformance.pair import Ask, chat, completion
from conformance.proof_of_many import prove_at_once
from conformance.registry import check

REGEX = r"(north|south|east|west)-[0-9]{3}-[a-f]{4}"
CHOICES = ["the harbour", "the valley", "the library", "the weather station"]
WORDS = ["yes", "no"]
# Left-recursion free and finite, in the GBNF-like EBNF that vLLM 0.32.0 takes, and in lark's.
GRAMMAR = (
    'root ::= action " " number " " place\naction ::= "move" | "count" | "mend"\n'
    'number ::= [1-9] [0-9]\nplace ::= "crates" | "ropes" | "lamps"'
)
LARK = (
    'start: action " " number " " place\naction: "move" | "count" | "mend"\n'
    'number: /[1-9][0-9]/\nplace: "crates" | "ropes" | "lamps"'
)


TAG = ("Manifest: <crate>", "</crate>")


def _schema(name: str = "crate") -> dict[str, Any]:
    path = fixtures() / "schemas" / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _response_format(name: str = "crate") -> Body:
    schema = {"name": name, "strict": True, "schema": _schema(name)}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _structural_tag() -> Body:
    """Text, then JSON between tags, as xgrammar 0.2.8 reads it; whitespace is not unlimited."""
    content = {"type": "json_schema", "json_schema": _schema("label"), "max_whitespace_cnt": 1}
    elements = [
        {"type": "const_string", "value": TAG[0]},
        {"type": "tag", "begin": "", "content": content, "end": TAG[1]},
    ]
    layout = {"type": "sequence", "elements": elements}
    return {"response_format": {"type": "structural_tag", "format": layout}}


def _valid_json(name: str = "crate") -> Callable[[str], None]:
    return lambda text: jsonschema.validate(json.loads(text), _schema(name))


def _valid_tag(text: str) -> None:
    whole = text.startswith(TAG[0]) and text.endswith(TAG[1])
    expect.true(whole, f"text should be JSON between {TAG[0]!r} and {TAG[1]!r}", text)
    _valid_json("label")(text.removeprefix(TAG[0]).removesuffix(TAG[1]))


def _begins_an_object(text: str) -> None:
    found = jiter.from_json(text.encode(), partial_mode="trailing-strings")
    if not isinstance(found, dict):
        raise ValueError("it begins no object")


def _valid_regex(text: str) -> None:
    expect.true(re.fullmatch(REGEX, text) is not None, f"text should match {REGEX}", text)


def _valid_choice(text: str) -> None:
    expect.true(text in CHOICES, f"text should be one of {CHOICES}", text)


def _valid_word(text: str) -> None:
    expect.true(text in WORDS, f"text should be one of {WORDS}", text)


def _valid_grammar(text: str) -> None:
    lark.Lark(LARK).parse(text)


Kind = tuple[Callable[[], Body], Callable[[str], None]]
MODES = ("unstreamed", "streamed")
KINDS: dict[str, Kind] = {
    "json-schema": (_response_format, _valid_json()),
    "regex": (lambda: {"structured_outputs": {"regex": REGEX}}, _valid_regex),
    "choice": (lambda: {"structured_outputs": {"choice": CHOICES}}, _valid_choice),
    "grammar": (lambda: {"structured_outputs": {"grammar": GRAMMAR}}, _valid_grammar),
}
MORE: dict[str, Kind] = {
    "array": (lambda: _response_format("crates"), _valid_json("crates")),
    "recursion": (lambda: _response_format("nested_crates"), _valid_json("nested_crates")),
    "structural-tag": (_structural_tag, _valid_tag),
    # P's one token is the whole answer.
    "one-word": (lambda: {"structured_outputs": {"choice": WORDS}}, _valid_word),
}


@check(
    "structured-output",
    feature="structured-output",
    cases=tuple(f"{kind}, {mode}" for kind in KINDS for mode in MODES),
    core_cases=(
        "json-schema, unstreamed",
        "json-schema, streamed",
        "regex, unstreamed",
        "choice, streamed",
        "grammar, streamed",
    ),
)
def test_the_answer_obeys_its_grammar(case: Case) -> None:
    """A constrained answer through the pair is valid, complete, and the reference's."""
    kind, mode = case.name.split(", ")
    _prove_kind(case, *KINDS[kind], f"chat constrained by a {kind}", streamed=mode == "streamed")


@check(
    "structured-output/more",
    feature="structured-output",
    level="extended",
    cases=tuple(f"{kind}, {mode}" for kind in MORE for mode in MODES),
)
def test_the_answer_obeys_more_of_a_grammar(case: Case) -> None:
    """Arrays, recursion, structural tags and single words hold across the handoff too."""
    kind, mode = case.name.split(", ")
    _prove_kind(case, *MORE[kind], f"chat constrained by a {kind}", streamed=mode == "streamed")


@check("structured-output/json-object", feature="structured-output", level="extended", cases=MODES)
def test_any_object_is_json_as_far_as_it_goes(case: Case) -> None:
    """An answer that may be any JSON object is one, or begins one if it ends by its length."""
    not_empty = away_from(case.pair.decode, "{}", "}")
    constraint = {"response_format": {"type": "json_object"}, "logit_bias": not_empty}
    ask = _chat(case, "chat constrained to an object", {**constraint, "max_tokens": 48})
    climbed = case.prove(ask.streamed() if case.name == "streamed" else ask)
    case.saw(ask.subject, climbed.answer.text)
    expect.equal(
        climbed.answer.finish_reason,
        climbed.expected.finish_reason,
        "finish_reason, against the reference's",
    )
    _must_hold(climbed.answer.text, _begins_an_object)


@check("structured-output/completions", feature="structured-output", level="extended", cases=MODES)
def test_completions_obey_a_grammar(case: Case) -> None:
    """A constrained answer of the completions endpoint is valid, complete, the reference's."""
    constraint, validate = KINDS["regex"]
    ask = Ask(
        "completion constrained by a regex",
        "completions",
        lambda variant: completion(
            case.ids(2 * case.block + 5, variant), max_tokens=96, **constraint()
        ),
    )
    _prove_valid(case, ask.streamed() if case.name == "streamed" else ask, validate)


@check("structured-output/token-ids", feature="structured-output", level="extended", cases=MODES)
def test_a_grammar_holds_with_token_id_reuse(case: Case) -> None:
    """A constrained answer is valid where D continues from the token ids that P made."""
    constraint, validate = KINDS["json-schema"]
    plain = _chat(case, "chat constrained by a json-schema, with P's ids", constraint())
    ask = Ask(plain.subject, plain.endpoint, plain.body, reuse_ids=True)
    _prove_valid(case, ask.streamed() if case.name == "streamed" else ask, validate)


@check("structured-output/side-by-side", feature="structured-output", level="extended")
def test_grammars_at_once_do_not_mix(case: Case) -> None:
    """Requests at once, each with a grammar of its own or none, each obey their own.

    On D each waits for its grammar and for its KV, and starts when it has both, so the rows of a
    batch are not in the order in which requests came.
    """
    kinds: dict[str, Kind] = {"nothing": (dict, lambda _: None), **KINDS, **MORE}
    bodies = [_body(case, constraint(), kind) for kind, (constraint, _) in kinds.items()]
    ask = _chat(
        case, f"{len(bodies)} chats at once, each constrained otherwise", KINDS["regex"][0]()
    )
    answers = [legs.decode for legs in prove_at_once(case, ask, bodies).legs]
    for (kind, (_, validate)), answer in zip(kinds.items(), answers, strict=True):
        case.saw(f"constrained by {kind}", answer.text)
        if kind != "nothing":
            _must_be_valid(answer, validate)


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
    _prove_valid(case, ask, _valid_json("label"))


def _body(case: Case, constraint: Body, *key: object) -> Body:
    return chat(case.text(2 * case.block, *key), **{"max_tokens": 160, **constraint})


def _chat(case: Case, subject: str, constraint: Body) -> Ask:
    return Ask(subject, "chat/completions", lambda variant: _body(case, constraint, variant))


def _prove_kind(
    case: Case,
    constraint: Callable[[], Body],
    validate: Callable[[str], None],
    subject: str,
    *,
    streamed: bool,
) -> None:
    ask = _chat(case, subject, constraint())
    _prove_valid(case, ask.streamed() if streamed else ask, validate)


def _prove_valid(case: Case, ask: Ask, validate: Callable[[str], None]) -> None:
    climbed = case.prove(ask)
    case.saw(ask.subject, climbed.answer.text)
    _must_be_valid(climbed.answer, validate)


def _must_be_valid(answer: Answer, validate: Callable[[str], None]) -> None:
    expect.equal(answer.finish_reason, "stop", "finish_reason of a complete answer")
    _must_hold(answer.text, validate)


def _must_hold(text: str, validate: Callable[[str], None]) -> None:
    try:
        validate(text)
    except (ValueError, jsonschema.ValidationError, lark.exceptions.LarkError) as problem:
        expect.true(False, f"the answer should obey its grammar ({problem})", text)
