"""Chat messages put together from deltas, and deltas that cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.answer import Transcript, from_response
from conformance.chat_message import Call, message_from, message_of, streamed_message, told_first
from conformance.errors import CheckFailed
from conformance.pair import Legs, chat

Json = dict[str, Any]
OPENING = {"index": 0, "id": "a", "type": "function", "function": {"name": "move"}}


def argument(text: str, index: int = 0, **more: Any) -> Json:
    return {"index": index, "function": {"arguments": text}, **more}


def streamed(*deltas: Json) -> Transcript:
    events = tuple({"choices": [{"index": 0, "delta": delta}]} for delta in deltas)
    return Transcript(events, done=True)


def calls(*entries: Json) -> Transcript:
    return streamed(*({"tool_calls": [entry]} for entry in entries))


def whole(**message: Any) -> Json:
    return {"choices": [{"index": 0, "message": {"role": "assistant", **message}}]}


def test_deltas_add_up_to_the_unstreamed_message() -> None:
    second = {**OPENING, "index": 1, "id": "b", "function": {"name": "light", "arguments": "{"}}
    transcript = streamed(
        {"role": "assistant", "content": ""},
        {"reasoning": "Well"},
        {"reasoning": ", well", "content": "As you "},
        {"content": "wish."},
        {"tool_calls": [OPENING]},
        {"tool_calls": [argument('{"count":'), argument("7}")]},
        {"tool_calls": [second, argument("}", index=1)]},
        {},
    )
    found = streamed_message(transcript)
    function = {"name": "move", "arguments": '{"count": 7}'}
    entries = [
        {"id": "c", "type": "function", "function": function},
        {"id": "d", "type": "function", "function": {"name": "light", "arguments": "{}"}},
    ]
    answer = from_response(
        whole(content="As you wish.", reasoning="Well, well", tool_calls=entries)
    )
    unstreamed = message_of(answer)
    assert (found.content, found.reasoning) == (unstreamed.content, unstreamed.reasoning)
    assert found.meanings == unstreamed.meanings == [("move", {"count": 7}), ("light", {})]
    assert found.calls[0] == Call("a", "move", '{"count":7}')
    assert message_from(Legs(answer, answer, transcript)) == found
    assert message_from(Legs(answer, answer)) == unstreamed


def test_what_a_message_lacks_is_empty() -> None:
    found = message_of(from_response(whole(content=None, tool_calls=None)))
    assert (found.content, found.reasoning, found.calls) == ("", "", ())


def test_older_servers_name_reasoning_otherwise() -> None:
    assert message_of(from_response(whole(reasoning_content="Hm"))).reasoning == "Hm"
    assert streamed_message(streamed({"reasoning_content": "Hm"})).reasoning == "Hm"


@pytest.mark.parametrize("missing", ["id", "type", "function"])
def test_the_first_delta_names_the_call(missing: str) -> None:
    part = {key: value for key, value in OPENING.items() if key != missing}
    with pytest.raises(CheckFailed, match="should have id, type and name"):
        streamed_message(calls(part))


@pytest.mark.parametrize("more", [{"id": "b"}, {"function": {"name": "move", "arguments": "}"}}])
def test_later_deltas_do_not(more: Json) -> None:
    with pytest.raises(CheckFailed, match="should not name it"):
        streamed_message(calls(OPENING, argument("{") | more))


@pytest.mark.parametrize("index", [2, -1])
def test_calls_come_in_order(index: int) -> None:
    with pytest.raises(CheckFailed, match=f"has index {index}, but should have at most 1"):
        streamed_message(calls(OPENING, {**OPENING, "index": index}))


def test_arguments_are_json() -> None:
    found = streamed_message(calls(OPENING, argument('{"count":')))
    with pytest.raises(CheckFailed, match="arguments of move should be JSON"):
        _ = found.meanings


def test_a_system_message_comes_first() -> None:
    told = told_first("Mind the lamps.", chat("And now?"))
    assert [message["role"] for message in told["messages"]] == ["system", "user"]
    assert told["max_tokens"] == chat("And now?")["max_tokens"]
