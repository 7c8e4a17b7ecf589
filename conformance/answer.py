"""What a server answered, in one shape for every endpoint, streamed or not."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

Json = dict[str, Any]
_Part = TypeVar("_Part")
REFERENCE = "the reference"


@dataclass(frozen=True)
class Answer:
    """One finished answer.

    ``logprobs`` and ``margins`` run parallel to ``token_ids``, in nats; a margin is the gap
    between the two likeliest tokens, infinite where the server gave only one. ``seconds``: ids of
    the second likeliest, -1 where the server did not name it by its id. ``given_by``: who answered,
    where that answer is what another's has to equal.
    """

    text: str
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    margins: tuple[float, ...]
    finish_reason: str | None
    prompt_token_ids: tuple[int, ...]
    usage: Json
    kv_transfer_params: Json | None = None
    raw: Json = field(default_factory=dict, repr=False)
    seconds: tuple[int, ...] = ()
    given_by: str = REFERENCE

    @property
    def prompt_tokens(self) -> int:
        """Prompt length as the server counts it."""
        return int(self.usage.get("prompt_tokens") or len(self.prompt_token_ids))


@dataclass(frozen=True)
class Transcript:
    """A streamed answer as it came over the wire: the events, and whether ``[DONE]`` ended it."""

    events: tuple[Json, ...]
    done: bool
    after_done: int = 0

    @property
    def choice_events(self) -> list[Json]:
        """The events that carry a piece of the first choice."""
        return [event for event in self.events if event.get("choices")]

    def answer(self) -> Answer:
        """The answer that the pieces add up to."""
        pieces = [event["choices"][0] for event in self.choice_events]
        scores = [_scores(piece.get("logprobs")) for piece in pieces]
        ids = [list(piece.get("token_ids") or ()) for piece in pieces]
        reasons = [piece["finish_reason"] for piece in pieces if piece.get("finish_reason")]
        usages = [event["usage"] for event in self.events if event.get("usage")]
        return Answer(
            text="".join(map(_piece_text, pieces)),
            token_ids=tuple(token for part in ids for token in part),
            logprobs=_join(chosen for chosen, _, _ in scores),
            margins=_join(margins for _, margins, _ in scores),
            finish_reason=reasons[-1] if reasons else None,
            prompt_token_ids=self._prompt_token_ids(),
            usage=usages[-1] if usages else {},
            seconds=_join(seconds for _, _, seconds in scores),
        )

    def _prompt_token_ids(self) -> tuple[int, ...]:
        for event in self.events:
            ids = event.get("prompt_token_ids")
            if not ids and event.get("choices"):
                ids = event["choices"][0].get("prompt_token_ids")
            if ids:
                return tuple(ids)
        return ()


def from_response(body: Json) -> Answer:
    """From an unstreamed completions or chat completions body."""
    choice = body["choices"][0]
    logprobs, margins, seconds = _scores(choice.get("logprobs"))
    prompt_ids = body.get("prompt_token_ids") or choice.get("prompt_token_ids") or ()
    return Answer(
        text=_message_text(choice),
        token_ids=tuple(choice.get("token_ids") or ()),
        logprobs=logprobs,
        margins=margins,
        finish_reason=choice.get("finish_reason"),
        prompt_token_ids=tuple(prompt_ids),
        usage=body.get("usage") or {},
        kv_transfer_params=body.get("kv_transfer_params"),
        raw=body,
        seconds=seconds,
    )


def _message_text(choice: Json) -> str:
    message = choice.get("message")
    return (message.get("content") if message else choice.get("text")) or ""


def _piece_text(piece: Json) -> str:
    delta = piece.get("delta")
    return (delta.get("content") if delta is not None else piece.get("text")) or ""


def _scores(
    block: Json | None,
) -> tuple[tuple[float, ...], tuple[float, ...], tuple[int, ...]]:
    """Log-probabilities, margins and runners-up from either endpoint's ``logprobs`` block."""
    if not block:
        return (), (), ()
    if block.get("content") is not None:
        items = block["content"]
        chosen = tuple(item["logprob"] for item in items)
        tops = [
            [(top["logprob"], str(top.get("token"))) for top in item.get("top_logprobs") or ()]
            for item in items
        ]
    else:
        chosen = tuple(value or 0.0 for value in block.get("token_logprobs") or ())
        tops = [
            [(value, name) for name, value in (top or {}).items()]
            for top in block.get("top_logprobs") or ()
        ]
    ranked = [sorted(top, key=lambda pair: pair[0], reverse=True) for top in tops]
    return chosen, tuple(map(_margin, ranked)), tuple(map(_second, ranked))


def _margin(ranked: list[tuple[float, str]]) -> float:
    return ranked[0][0] - ranked[1][0] if len(ranked) > 1 else math.inf


def _second(ranked: list[tuple[float, str]]) -> int:
    """Its id, as named with ``return_tokens_as_token_ids``."""
    name = ranked[1][1] if len(ranked) > 1 else ""
    number = name.removeprefix("token_id:")
    return int(number) if number != name and number.isdigit() else -1


def _join(parts: Iterable[tuple[_Part, ...]]) -> tuple[_Part, ...]:
    return tuple(value for part in parts for value in part)
