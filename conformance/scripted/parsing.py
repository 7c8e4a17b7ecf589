"""What a server tells of an answer's text: reasoning, content, tool calls; whole or in deltas.

As vLLM 0.32.0 with the parsers ``hermes`` and ``olmo3``: marks that may yet be completed are held
back; arguments of an unstreamed call are written anew, so their spacing differs.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from conformance.scripted.faults import Faults
from conformance.scripted.thinking import END

Json = dict[str, Any]
CALL, CALL_END = "<tool_call>", "</tool_call>"
_NAME = re.compile(r'"name": "([^"]+)"')
_ARGUMENTS = '"arguments": '


@dataclass(frozen=True)
class Told:
    """An answer as far as it can be told; each call is a name and its arguments."""

    reasoning: str
    content: str
    calls: list[tuple[str, str]]


@dataclass(frozen=True)
class Parsing:
    """How one chat request's text is told."""

    body: Json
    thinks: bool
    faults: Faults

    def reason(self, text: str, reason: str) -> str:
        """The ``finish_reason``: calls change it, except those of a tool that was named."""
        called = self._told(text).calls and not isinstance(self.body.get("tool_choice"), dict)
        return "tool_calls" if called and reason == "stop" else reason

    def message(self, text: str) -> Json:
        """Of the whole text."""
        told = self._told(text, done=True)
        calls = [
            {"id": _id(at), "type": "function", "function": {"name": n, "arguments": _anew(a)}}
            for at, (n, a) in enumerate(told.calls)
        ]
        thoughts = {"reasoning": told.reasoning} if self.thinks else {}
        return {"content": told.content, **thoughts, **({"tool_calls": calls} if calls else {})}

    def delta(self, before: str, more: str, *, last: bool) -> Json:
        """What ``more`` adds to the text ``before`` it."""
        old, new = self._told(before), self._told(before + more, done=last)
        delta: Json = {}
        if new.reasoning != old.reasoning:
            delta["reasoning"] = new.reasoning[len(old.reasoning) :]
        if new.content != old.content:
            delta["content"] = new.content[len(old.content) :]
        entries = [
            entry for at in range(len(new.calls)) for entry in self._entries(at, old.calls, new)
        ]
        return {**delta, **({"tool_calls": entries} if entries else {})}

    def _entries(self, at: int, old: list[tuple[str, str]], new: Told) -> list[Json]:
        name, arguments = new.calls[at]
        known = at < len(old)
        more = arguments[len(old[at][1]) if known else 0 :]
        opening = {"index": at, "id": _id(at), "type": "function", "function": {"name": name}}
        entries: list[Json] = [] if known else [opening]
        if more and not ("loses_delta" in self.faults and arguments.endswith("}")):
            entries.append({"index": at, "function": {"arguments": more}})
            if "names_again" in self.faults:
                entries[-1] |= {"id": _id(9), "type": "function"}
        return entries

    def _told(self, text: str, *, done: bool = False) -> Told:
        reasoning, content = "", text
        if self.thinks:
            reasoning, mark, content = text.partition(END)
            reasoning = reasoning if mark or done else _sure(reasoning, END)
        if "raw_thoughts" in self.faults:
            reasoning, content = "", text
        if "loses_thoughts" in self.faults:
            reasoning = ""
        content, calls = self._parsed(content, done)
        return Told(reasoning, content, calls)

    def _parsed(self, text: str, done: bool) -> tuple[str, list[tuple[str, str]]]:
        if "loses_text" in self.faults and self.body.get("tools"):
            text = text[1:]
        asked = self.body.get("tools") and self.body.get("tool_choice") != "none"
        if "calls_unasked" in self.faults:
            asked = True
        if not asked or "raw_calls" in self.faults:
            return text, []
        content, *regions = text.split(CALL)
        calls = [call for region in regions if (call := _call(region))]
        if self.body.get("parallel_tool_calls") is False and "all_calls" not in self.faults:
            calls = calls[:1]
        if "loses_call" in self.faults:
            calls = calls[1:]
        return content if done or regions else _sure(content, CALL), calls


def _call(region: str) -> tuple[str, str] | None:
    """Name and arguments, as far as they go; nothing before the name is known."""
    named = _NAME.search(region)
    if not named:
        return None
    raw = region.partition(_ARGUMENTS)[2]
    try:
        return named[1], raw[: json.JSONDecoder().raw_decode(raw)[1]]
    except ValueError:
        return named[1], raw


def _sure(text: str, mark: str) -> str:
    """The text without what may be the beginning of a mark."""
    held = next((n for n in range(len(mark) - 1, 0, -1) if text.endswith(mark[:n])), 0)
    return text[: len(text) - held]


def _anew(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), separators=(", ", ": "))
    except ValueError:
        return arguments


def _id(at: int) -> str:
    return f"chatcmpl-tool-{at}"
