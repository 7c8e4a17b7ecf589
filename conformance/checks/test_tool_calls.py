"""Tool calls: parsed on D out of an answer that D alone has written.

P has spent its one token on the beginning of a call that nobody can parse: a server that tries
answers 500 (vllm#38911). D starts the tool's grammar anew and parses what comes. A model with
random weights calls nothing of its own accord, so a call is forced: by ``tool_choice``, or, where
that leaves the choice to the model, by a structural tag that spells out the call.
"""

import json
from collections.abc import Callable
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

MODES = ("unstreamed", "streamed")
QUESTION = "What shall be done?"
LEAD = "As you wish. "
NAMED: Body = {"type": "function", "function": {"name": "light"}}
CHOICES: dict[str, Any] = {"required": "required", "named": NAMED}
# How each forced call ends: OpenAI's API says "stop" where the client named the tool.
REASONS = {"required": "tool_calls", "named": "stop"}


def _tools(*, strict: bool = True) -> list[Body]:
    """Without ``strict``, ``tool_choice: auto`` leaves the grammar to the request (vLLM 0.32.0)."""
    found: list[Body] = json.loads((fixtures() / "tools" / "harbour.json").read_text("utf-8"))
    if not strict:
        for tool in found:
            del tool["function"]["strict"]
    return found


def _ask(case: Case, what: str, *, max_tokens: int = 120, **fields: Any) -> Ask:
    return Ask(
        f"chat with tools, {what}",
        "chat/completions",
        lambda variant: told_first(
            case.text(2 * case.block, variant), chat(QUESTION, max_tokens, **fields)
        ),
    )


def _forced(case: Case, choice: str) -> Ask:
    bias = towards_json(case.pair.decode, digits="127")
    fields: Body = {"tools": _tools(), "tool_choice": CHOICES[choice], "logit_bias": bias}
    # Without it "required" means one or more, and random weights go on and on.
    fields |= {"parallel_tool_calls": False} if choice == "required" else {}
    return _ask(case, f"tool_choice {choice}", **fields)


def _spelled(*names: str) -> Body:
    """Makes the model write calls of these tools as the server's parser reads them (hermes)."""
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in _tools()}
    calls = [
        {
            "type": "tag",
            "begin": f'<tool_call>\n{{"name": "{name}", "arguments": ',
            "content": {
                "type": "json_schema",
                "json_schema": schemas[name],
                "max_whitespace_cnt": 1,
            },
            "end": "}\n</tool_call>",
        }
        for name in names
    ]
    elements = [{"type": "const_string", "value": LEAD}, *calls]
    return {"type": "structural_tag", "format": {"type": "sequence", "elements": elements}}


@check(
    "tool-calls/forced",
    feature="tool-calls",
    cases=tuple(f"{choice}, {mode}" for choice in CHOICES for mode in MODES),
    core_cases=("required, streamed",),
)
def test_a_forced_call_is_the_references(case: Case) -> None:
    """A tool call forced by tool_choice is the reference's and obeys the tool's schema."""
    choice, mode = case.name.split(", ")
    ask = _forced(case, choice)
    _one_valid_call(case, case.prove(ask.streamed() if mode == "streamed" else ask), choice)


@check("tool-calls/token-ids", feature="tool-calls", level="extended", cases=tuple(CHOICES))
def test_a_call_is_parsed_after_token_id_reuse(case: Case) -> None:
    """A forced call is the reference's where D continues from the token ids that P made."""
    plain = _forced(case, case.name)
    ask = Ask(f"{plain.subject}, with P's ids", plain.endpoint, plain.body, reuse_ids=True)
    _one_valid_call(case, case.prove(ask), case.name)


@check(
    "tool-calls/auto",
    feature="tool-calls",
    level="extended",
    cases=tuple(f"{calls}, {mode}" for calls in ("one call", "two calls") for mode in MODES),
)
def test_calls_of_the_models_own_are_parsed(case: Case) -> None:
    """Calls that a model makes by itself are parsed, in order, and text before them is kept."""
    calls, mode = case.name.split(", ")
    names = ("light", "move")[: 1 if calls == "one call" else 2]
    fields: Body = {"tools": _tools(strict=False), "tool_choice": "auto"}
    ask = _ask(case, f"{calls} by itself", **fields, response_format=_spelled(*names))
    climbed = case.prove(ask.streamed() if mode == "streamed" else ask)
    message = _as_the_reference(case, climbed)
    expect.equal([call.name for call in message.calls], list(names), "tools that were called")
    expect.equal(message.content, LEAD, "text before the calls")
    expect.equal(climbed.answer.finish_reason, "tool_calls", "finish_reason")
    _obey_their_schemas(message)


@check("tool-calls/one-at-most", feature="tool-calls", level="extended", cases=MODES)
def test_no_more_calls_than_allowed(case: Case) -> None:
    """Of two calls, a client that forbids parallel ones gets the first."""
    fields: Body = {"tools": _tools(strict=False), "parallel_tool_calls": False}
    ask = _ask(case, "one of two calls", **fields, response_format=_spelled("light", "move"))
    climbed = case.prove(ask.streamed() if case.name == "streamed" else ask)
    message = _as_the_reference(case, climbed)
    expect.equal([call.name for call in message.calls], ["light"], "tools that were called")


UNTOUCHED: dict[str, Callable[[], Body]] = {
    "auto, no call": lambda: {"tool_choice": "auto"},
    "none, no call": lambda: {"tool_choice": "none"},
    "none, text of a call": lambda: {"tool_choice": "none", "response_format": _spelled("light")},
}


@check(
    "tool-calls/untouched",
    feature="tool-calls",
    level="extended",
    cases=tuple(f"{kind}, {mode}" for kind in UNTOUCHED for mode in MODES),
)
def test_text_that_is_no_call_stays_text(case: Case) -> None:
    """An answer without a call, or whose calls were not asked for, is text, all of it."""
    kind, _, mode = case.name.rpartition(", ")
    ask = _ask(case, kind, max_tokens=48, tools=_tools(strict=False), **UNTOUCHED[kind]())
    climbed = case.prove(ask.streamed() if mode == "streamed" else ask)
    message = _as_the_reference(case, climbed)
    expect.equal(list(message.calls), [], "tool calls")
    expect.not_empty(message.content, "the content")
    if kind == "none, text of a call":
        expect.true("<tool_call>" in message.content, "the markup should be kept", message.content)


@check("tool-calls/result", feature="tool-calls", level="extended", cases=MODES)
def test_a_chat_goes_on_after_a_tools_result(case: Case) -> None:
    """A chat with a call and the tool's result in it is continued from transferred KV."""
    ask = Ask("chat with a tool's result", "chat/completions", lambda v: _with_result(case, v))
    climbed = case.prove(ask.streamed() if case.name == "streamed" else ask)
    _as_the_reference(case, climbed)


def _with_result(case: Case, variant: int) -> Body:
    function = {"name": "light", "arguments": '{"side": "port"}'}
    called = {"id": "call-1", "type": "function", "function": function}
    result = case.text(20, "result", variant)
    body = chat(QUESTION, max_tokens=16, tools=_tools(), tool_choice="none")
    body["messages"] += [
        {"role": "assistant", "content": "", "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "call-1", "content": result},
    ]
    return told_first(case.text(2 * case.block, variant), body)


def _one_valid_call(case: Case, climbed: Climbed, choice: str) -> None:
    message = _as_the_reference(case, climbed)
    expect.equal(len(message.calls), 1, "number of calls")
    if choice == "named":
        expect.equal(message.calls[0].name, NAMED["function"]["name"], "the tool called")
    expect.equal(message.content, "", "text beside the call")
    expect.equal(climbed.answer.finish_reason, REASONS[choice], "finish_reason")
    _obey_their_schemas(message)


def _as_the_reference(case: Case, climbed: Climbed) -> Message:
    """What the client was told, which has to be what the reference tells, unstreamed."""
    expected, seen = message_of(climbed.expected), message_from(climbed.legs)
    case.saw("calls", [[call.name, call.arguments] for call in seen.calls])
    case.saw("content", seen.content)
    expect.equal(climbed.legs.prefill.finish_reason, "length", "finish_reason of P's one token")
    expect.equal(seen.meanings, expected.meanings, "calls, against the reference's")
    expect.equal(seen.content, expected.content, "content, against the reference's")
    reason = climbed.expected.finish_reason
    expect.equal(climbed.answer.finish_reason, reason, "finish_reason, against the reference's")
    expect.equal(len({call.id for call in seen.calls}), len(seen.calls), "different call ids")
    return seen


def _obey_their_schemas(message: Message) -> None:
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in _tools()}
    for name, arguments in message.meanings:
        expect.true(name in schemas, f"a tool that was called should be one of {[*schemas]}", name)
        try:
            jsonschema.validate(arguments, schemas[name])
        except jsonschema.ValidationError as problem:
            expect.true(False, f"arguments should obey the schema ({problem.message})", arguments)
