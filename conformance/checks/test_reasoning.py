"""Reasoning: told from the answer on D, by where D's own prompt and tokens say it ends.

Whether reasoning has ended decides what is reasoning and what is content, and when a grammar
begins; D works it out from the prompt's token ids (vLLM 0.32.0, ``resolve_reasoning_ended``). The
servers get a chat template that opens the reasoning, and a parser for models to which the marks
are ordinary tokens; a model with random weights is stopped by a budget of reasoning tokens.
"""

import json
from typing import Any

import jsonschema

from conformance import expect
from conformance.case import Case
from conformance.chat_message import Message, message_from, message_of, told_first
from conformance.client import Body
from conformance.data import fixtures
from conformance.ladder import Climbed
from conformance.leaning import towards_json
from conformance.pair import Ask, chat
from conformance.registry import check
from conformance.serving.deployment import Shape

TEMPLATE = fixtures() / "templates" / "thinking.jinja"
PARSER = fixtures() / "parsers" / "thinking.py"
THINKING = Shape(
    "thinking",
    args=(
        *("--reasoning-parser", "thinking", "--reasoning-parser-plugin", str(PARSER)),
        *("--chat-template", str(TEMPLATE)),
    ),
)
QUESTION = "What shall be done?"
END = "</think>"
BUDGET = 8
MODES = ("unstreamed", "streamed", "token ids")
OFF: Body = {"chat_template_kwargs": {"enable_thinking": False}}


def _ask(case: Case, what: str, max_tokens: int = 32, **fields: Any) -> Ask:
    """``case.name`` says how D is asked, at its end."""
    fields = {"thinking_token_budget": BUDGET, **fields}
    ask = Ask(
        f"chat with {what}",
        "chat/completions",
        lambda variant: told_first(
            case.text(2 * case.block, variant), chat(QUESTION, max_tokens, **fields)
        ),
        reuse_ids=case.name.endswith("token ids"),
    )
    return ask.streamed() if case.name.endswith(", streamed") or case.name == "streamed" else ask


@check("reasoning/told-apart", feature="reasoning", level="extended", cases=MODES, shape=THINKING)
def test_reasoning_is_told_from_the_answer(case: Case) -> None:
    """Reasoning and content of an answer through the pair are the reference's, each its own."""
    message = _as_the_reference(case, case.prove(_ask(case, "reasoning")))
    expect.not_empty(message.reasoning, "the reasoning")
    expect.not_empty(message.content, "the content")
    expect.true(END not in message.reasoning + message.content, f"no text has {END}", message)


@check("reasoning/off", feature="reasoning", level="extended", cases=MODES, shape=THINKING)
def test_reasoning_can_be_turned_off(case: Case) -> None:
    """With enable_thinking off, all of an answer is content, and the prompt is another one."""
    ask = _ask(case, "reasoning turned off", max_tokens=16, **OFF)
    climbed = case.prove(ask)
    message = _as_the_reference(case, climbed)
    expect.equal(message.reasoning, "", "the reasoning")
    expect.not_empty(message.content, "the content")
    thinking = {key: value for key, value in ask.body(0).items() if key not in OFF}
    on = case.pair.expected(ask.endpoint, thinking).prompt_token_ids
    off = climbed.legs.prefill.prompt_token_ids
    case.saw("tokens of the prompt with reasoning and without", [len(on), len(off)])
    expect.true(on != off, "the prompt should say that reasoning is off", "the same prompt")


@check("reasoning/then-json", feature="reasoning", level="extended", cases=MODES, shape=THINKING)
def test_a_grammar_waits_for_the_end_of_reasoning(case: Case) -> None:
    """A schema holds for the content and not for the reasoning before it."""
    schema = json.loads((fixtures() / "schemas" / "label.json").read_text("utf-8"))
    wanted = {"type": "json_schema", "json_schema": {"name": "label", "schema": schema}}
    ask = _ask(case, "reasoning, then JSON", max_tokens=64, response_format=wanted)
    climbed = case.prove(ask)
    message = _as_the_reference(case, climbed)
    expect.equal(climbed.answer.finish_reason, "stop", "finish_reason of a complete answer")
    expect.not_empty(message.reasoning, "the reasoning")
    try:
        jsonschema.validate(json.loads(message.content), schema)
    except (ValueError, jsonschema.ValidationError) as problem:
        expect.true(False, f"the content should obey its schema ({problem})", message.content)


@check("reasoning/then-call", feature="reasoning", level="extended", cases=MODES, shape=THINKING)
def test_a_call_is_parsed_after_reasoning(case: Case) -> None:
    """A tool call that follows reasoning is parsed, with the tools in the prompt of both sides."""
    tools = json.loads((fixtures() / "tools" / "harbour.json").read_text("utf-8"))
    choice = {"type": "function", "function": {"name": "light"}}
    bias = towards_json(case.pair.decode)
    fields: Body = {"tools": tools, "tool_choice": choice, "logit_bias": bias}
    climbed = case.prove(_ask(case, "reasoning, then a call", max_tokens=120, **fields))
    message = _as_the_reference(case, climbed)
    expect.not_empty(message.reasoning, "the reasoning")
    expect.equal([call.name for call in message.calls], ["light"], "tools that were called")
    expect.equal(message.content, "", "text beside the call")


def _as_the_reference(case: Case, climbed: Climbed) -> Message:
    """What the client was told, which has to be what the reference tells, unstreamed."""
    expected, seen = message_of(climbed.expected), message_from(climbed.legs)
    case.saw("reasoning", seen.reasoning)
    case.saw("content", seen.content)
    expect.equal(seen.reasoning, expected.reasoning, "reasoning, against the reference's")
    expect.equal(seen.content, expected.content, "content, against the reference's")
    expect.equal(seen.meanings, expected.meanings, "calls, against the reference's")
    reason = climbed.expected.finish_reason
    expect.equal(climbed.answer.finish_reason, reason, "finish_reason, against the reference's")
    return seen
