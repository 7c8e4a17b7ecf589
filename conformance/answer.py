"""What a server answered, in one shape for every endpoint, streamed or not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from conformance import dialects
from conformance.endpoints import Endpoint
from conformance.errors import CheckFailed
from conformance.scores import names_of_items, scores_of

Json = dict[str, Any]
_Part = TypeVar("_Part")
REFERENCE = "the reference"
_BODIES: dict[Endpoint, Callable[[Json], Json]] = {
    "responses": dialects.response,
    "messages": dialects.message,
}
_EVENTS: dict[Endpoint, Callable[[Sequence[Json]], Json]] = {
    "responses": dialects.response_events,
    "messages": dialects.message_events,
}


@dataclass(frozen=True)
class Answer:
    """One finished answer.

    ``logprobs`` and ``margins`` run parallel to ``token_ids``, in nats; a margin is the gap
    between the two likeliest tokens, infinite where the server gave only one. ``seconds``: ids of
    the second likeliest, -1 where the server did not name it by its id. ``given_by``: who answered,
    where that answer is what another's has to equal. ``usage`` has the names of chat completions
    for every endpoint. ``text_only``: the endpoint gives neither token ids nor scores. ``names``,
    ``runners``: how the tokens and the second likeliest are spelled, where these have no ids.
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
    text_only: bool = False
    names: tuple[str, ...] = ()
    runners: tuple[str, ...] = ()

    @property
    def prompt_tokens(self) -> int:
        """Prompt length as the server counts it."""
        return int(self.usage.get("prompt_tokens") or len(self.prompt_token_ids))

    @property
    def completion_tokens(self) -> int:
        """Tokens of the answer as the server counts them."""
        return int(self.usage.get("completion_tokens") or 0)

    @property
    def counted(self) -> Json:
        """What usage has to say, counted from the token ids."""
        prompt, said = len(self.prompt_token_ids), len(self.token_ids)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": said,
            "total_tokens": prompt + said,
        }

    @property
    def cached_tokens(self) -> int | None:
        """Prompt tokens found in a cache; ``None`` where the server does not tell."""
        found = (self.usage.get("prompt_tokens_details") or {}).get("cached_tokens")
        return None if found is None else int(found)


@dataclass(frozen=True)
class Transcript:
    """A streamed answer as it came over the wire: the events, and whether the last one ended it.

    ``endpoint``: whose events they are. ``after_done``: events after the one that ends a stream.
    """

    events: tuple[Json, ...]
    done: bool
    after_done: int = 0
    endpoint: Endpoint = "completions"

    @property
    def choice_events(self) -> list[Json]:
        """The events that carry a piece of a choice."""
        return [event for event in self.events if event.get("choices")]

    @property
    def pieces(self) -> list[Json]:
        """The pieces of all choices, as they came."""
        return [choice for event in self.choice_events for choice in event["choices"]]

    @property
    def usages(self) -> list[Json]:
        """Every usage that was told, in order."""
        return [event["usage"] for event in self.events if event.get("usage")]

    def must_be_whole(self) -> None:
        """Raises :class:`CheckFailed` for a stream that was cut off, or went on after its end."""
        if not self.done:
            last = "its last event" if self.endpoint in _EVENTS else "[DONE]"
            raise CheckFailed(f"the stream ended after {len(self.events)} events, without {last}")
        if self.after_done:
            raise CheckFailed(f"{self.after_done} events came after the stream's end")

    def answer(self, index: int = 0) -> Answer:
        """The answer that the pieces of a choice add up to."""
        if self.endpoint in _EVENTS:
            return Answer(**_EVENTS[self.endpoint](self.events))
        pieces = self._pieces(index)
        scores = [scores_of(piece.get("logprobs")) for piece in pieces]
        ids = [list(piece.get("token_ids") or ()) for piece in pieces]
        reasons = [piece["finish_reason"] for piece in pieces if piece.get("finish_reason")]
        return Answer(
            text="".join(map(_piece_text, pieces)),
            token_ids=tuple(token for part in ids for token in part),
            logprobs=_join(chosen for chosen, _, _ in scores),
            margins=_join(margins for _, margins, _ in scores),
            finish_reason=reasons[-1] if reasons else None,
            prompt_token_ids=self._prompt_token_ids(pieces),
            usage=self.usages[-1] if self.usages else {},
            seconds=_join(seconds for _, _, seconds in scores),
        )

    def answers(self) -> list[Answer]:
        """The answers of all choices, in the order of their indexes."""
        indexes = {piece.get("index", 0) for piece in self.pieces}
        return [self.answer(index) for index in sorted(indexes)]

    def _pieces(self, index: int) -> list[Json]:
        return [piece for piece in self.pieces if piece.get("index", 0) == index]

    def _prompt_token_ids(self, pieces: list[Json]) -> tuple[int, ...]:
        given = [event.get("prompt_token_ids") for event in self.events]
        given += [piece.get("prompt_token_ids") for piece in pieces]
        return tuple(next((ids for ids in given if ids), ()))


def from_response(body: Json, endpoint: Endpoint = "completions") -> Answer:
    """From an unstreamed body; its first choice where it has several."""
    if endpoint in _BODIES:
        return Answer(**_BODIES[endpoint](body))
    return _from_choice(body, body["choices"][0])


def spelled_as(answer: Answer, twin: Answer) -> Answer:
    """A text-only answer with the scores of the same answer to a chat that tells them by token."""
    items = (twin.raw["choices"][0].get("logprobs") or {}).get("content") or []
    names, runners = names_of_items(items)
    if "".join(names) != answer.text:
        return answer
    return replace(answer, margins=twin.margins, names=names, runners=runners)


def all_answers(body: Json) -> list[Answer]:
    """From every choice of an unstreamed body, in the order of their indexes; usage is of all."""
    choices = sorted(body["choices"], key=lambda choice: int(choice.get("index", 0)))
    return [_from_choice(body, choice) for choice in choices]


def _from_choice(body: Json, choice: Json) -> Answer:
    logprobs, margins, seconds = scores_of(choice.get("logprobs"))
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


def _join(parts: Iterable[tuple[_Part, ...]]) -> tuple[_Part, ...]:
    return tuple(value for part in parts for value in part)
