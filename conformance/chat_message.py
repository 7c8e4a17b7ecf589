"""What a chat message holds beside its text: reasoning and tool calls, streamed or not.

Names of fields as in vLLM 0.32.0, ``entrypoints/generate/base/protocol.py``: ``reasoning`` (older
versions: ``reasoning_content``), ``tool_calls`` and their deltas.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from conformance.answer import Answer, Json, Transcript
from conformance.client import Body
from conformance.errors import CheckFailed
from conformance.pair import Legs


@dataclass(frozen=True)
class Call:
    """One tool call; ``arguments`` are JSON as text, whose spacing differs when streamed."""

    id: str
    name: str
    arguments: str

    @property
    def meaning(self) -> tuple[str, Any]:
        """Name and parsed arguments. Raises :class:`CheckFailed` where they are no JSON."""
        try:
            return self.name, json.loads(self.arguments)
        except ValueError as problem:
            raise CheckFailed(
                f"arguments of {self.name} should be JSON ({problem}), but were {self.arguments!r}"
            ) from problem


@dataclass(frozen=True)
class Message:
    """An assistant's message; parts that the server did not send are empty."""

    content: str
    reasoning: str
    calls: tuple[Call, ...]

    @property
    def meanings(self) -> list[tuple[str, Any]]:
        """What its calls mean, in order. Raises :class:`CheckFailed`."""
        return [call.meaning for call in self.calls]


def message_of(answer: Answer) -> Message:
    """The message of an unstreamed chat answer."""
    found = answer.raw["choices"][0]["message"]
    calls = [
        Call(str(entry["id"]), entry["function"]["name"], entry["function"]["arguments"])
        for entry in found.get("tool_calls") or ()
    ]
    return Message(found.get("content") or "", _reasoning(found), tuple(calls))


def streamed_message(transcript: Transcript) -> Message:
    """The message that the deltas of a streamed chat answer add up to.

    Raises :class:`CheckFailed` for tool call deltas that no client can put together.
    """
    deltas = [event["choices"][0].get("delta") or {} for event in transcript.choice_events]
    return Message(
        "".join(delta.get("content") or "" for delta in deltas),
        "".join(map(_reasoning, deltas)),
        _added_up(entry for delta in deltas for entry in delta.get("tool_calls") or ()),
    )


def message_from(legs: Legs) -> Message:
    """What the client of a pair was told, streamed or not."""
    if legs.transcript is not None:
        return streamed_message(legs.transcript)
    return message_of(legs.decode)


def told_first(text: str, body: Body) -> Body:
    """The chat with a system message before it.

    Templates put tools behind the system's message, or else first, where they make the first
    blocks of all prompts alike, so that no prompt would be cold.
    """
    return {**body, "messages": [{"role": "system", "content": text}, *body["messages"]]}


def _reasoning(part: Json) -> str:
    return part.get("reasoning") or part.get("reasoning_content") or ""


def _added_up(entries: Iterable[Json]) -> tuple[Call, ...]:
    """Calls in the order of their indexes: the first delta names one, others lengthen it."""
    calls: list[Call] = []
    for entry in entries:
        index, function = entry["index"], entry.get("function") or {}
        if index == len(calls):
            calls.append(_begun(entry, function))
        elif not 0 <= index < len(calls):
            raise CheckFailed(
                f"tool call delta has index {index}, but should have at most {len(calls)}: {entry}"
            )
        else:
            calls[index] = _lengthened(calls[index], entry, function)
    return tuple(calls)


def _begun(entry: Json, function: Json) -> Call:
    if not entry.get("id") or entry.get("type") != "function" or not function.get("name"):
        raise CheckFailed(
            f"the first delta of a tool call should have id, type and name, but was {entry}"
        )
    return Call(entry["id"], function["name"], function.get("arguments") or "")


def _lengthened(call: Call, entry: Json, function: Json) -> Call:
    if entry.get("id") not in (None, call.id) or function.get("name"):
        raise CheckFailed(f"a later delta of a tool call should not name it, but was {entry}")
    return Call(call.id, call.name, call.arguments + (function.get("arguments") or ""))
