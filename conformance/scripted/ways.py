"""Endpoints beside one completion and one chat: each is split into these, and put together again.

Bodies as vLLM 0.32.0 reads and writes them. ``[DONE]`` ends a stream that does not end itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from conformance.scripted import api, choices, usage
from conformance.scripted.engine import Finished
from conformance.scripted.faults import Faults

Json = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """One prompt of a request: what the toy engine was asked, and what it said."""

    chat: bool
    body: Json
    ids: list[int]
    done: Finished


class Way:
    """One endpoint that asks for a single completion or chat."""

    ends_itself = False

    def __init__(self, *, chat: bool) -> None:
        self.chat = chat

    def split(self, body: Json, faults: Faults) -> list[Json]:
        """A completions or chat body for each prompt."""
        return [body]

    def whole(self, head: Json, parts: list[Part]) -> Json:
        """The unstreamed answer."""
        (part,) = parts
        return api.whole(self.chat, head, part.body, part.ids, part.done)

    def pieces(self, head: Json, parts: list[Part]) -> Iterator[Json]:
        """The events of a streamed one."""
        (part,) = parts
        return api.pieces(self.chat, head, part.body, part.ids, part.done)


class Completions(Way):
    """One prompt, or a list of them.

    vLLM returns the params of the first alone and gives all what it is given, which is the fault
    ``first_for_all``; here each prompt has its own.
    """

    def split(self, body: Json, faults: Faults) -> list[Json]:
        prompts = body["prompt"]
        if not (isinstance(prompts, list) and prompts and isinstance(prompts[0], list | str)):
            return [body]
        made = [{**body, "prompt": prompt} for prompt in prompts]
        given = body.get("kv_transfer_params") or {}
        for number, each in enumerate(made):
            if "each" in given:
                each["kv_transfer_params"] = given["each"][number]
            elif number and given.get("do_remote_prefill") and "first_for_all" in faults:
                name = f"{given['remote_request_id']}~{number}"
                each["kv_transfer_params"] = {**given, "remote_request_id": name}
        return made

    def whole(self, head: Json, parts: list[Part]) -> Json:
        answer = super().whole(head, parts[:1])
        answer["choices"] = list(_numbered(choices.whole, parts))
        answer["usage"] = usage.together([usage.of(p.body, p.ids, p.done) for p in parts])
        each = [part.done.params for part in parts]
        if len(parts) > 1 and all(each):
            answer["kv_transfer_params"] = {**each[0], "each": each}
        return answer

    def pieces(self, head: Json, parts: list[Part]) -> Iterator[Json]:
        if len(parts) == 1:
            yield from super().pieces(head, parts)
            return
        for choice in _numbered(choices.pieces, parts):
            yield {**head, "object": "text_completion", "choices": [choice]}


class Batch(Way):
    """Several chats, none of which is told of the handoff."""

    def split(self, body: Json, faults: Faults) -> list[Json]:
        rest = {key: value for key, value in body.items() if key != "kv_transfer_params"}
        made = [{**rest, "messages": messages} for messages in body["messages"]]
        return made[::-1] if "mixed_up" in faults else made

    def whole(self, head: Json, parts: list[Part]) -> Json:
        answer = super().whole(head, parts[:1])
        answer["choices"] = list(_numbered(choices.whole, parts))
        answer["usage"] = usage.together([usage.of(p.body, p.ids, p.done) for p in parts])
        return {**answer, "kv_transfer_params": None, "prompt_token_ids": None}


class Generate(Way):
    """Token ids in and out; sampling fields are in a place of their own."""

    def split(self, body: Json, faults: Faults) -> list[Json]:
        plain = {"prompt": body["token_ids"], "return_tokens_as_token_ids": True}
        return [{**body, **body["sampling_params"], **plain, "return_token_ids": True}]

    def whole(self, head: Json, parts: list[Part]) -> Json:
        answer = super().whole(head, parts)
        return {**answer, **_untold(answer["choices"][0], parts[0])}

    def pieces(self, head: Json, parts: list[Part]) -> Iterator[Json]:
        for number, event in enumerate(super().pieces(head, parts)):
            untold = _untold(event["choices"][0], parts[0]) if event["choices"] else {}
            if number:
                untold.pop("prompt_token_ids", None)
            yield {**event, **untold}


def _untold(choice: Json, part: Part) -> Json:
    """A choice without text, whose tokens are named by their ids."""
    rest = {key: value for key, value in choice.items() if key not in ("text", "prompt_token_ids")}
    block = choice.get("logprobs")
    if block:
        named = zip(
            choice["token_ids"], block["token_logprobs"], block["top_logprobs"], strict=True
        )
        rest["logprobs"] = {"content": [_item(*entry) for entry in named]}
    return {"choices": [rest], "prompt_token_ids": part.ids}


def _item(token: int, logprob: float, tops: dict[str, float]) -> Json:
    ranked = [{"token_id": int(name[9:]), "logprob": value} for name, value in tops.items()]
    return {"token_id": token, "logprob": logprob, "top_logprobs": ranked}


def _numbered(write: Any, parts: list[Part]) -> Iterator[Json]:
    """The choices of all parts, counted through."""
    before = 0
    for part in parts:
        for choice in write(part.chat, part.body, part.ids, part.done):
            yield {**choice, "index": before + choice["index"]}
        before += len(part.done.choices)
