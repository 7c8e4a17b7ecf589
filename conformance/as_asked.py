"""What an answer holds because it was asked for; a gateway may have dropped the wish, or its fruit.

Two answers without token ids are equal, so nobody is to compare them. vLLM 0.32.0 gives the ids
of a choice, if only an empty list, wherever ``return_token_ids`` is asked for, and scores for
every token where ``logprobs`` is (``openai/completion/serving.py``, ``openai/chat_completion``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from conformance.answer import Answer, from_response
from conformance.endpoints import Body, Endpoint
from conformance.errors import CheckFailed

Json = Mapping[str, Any]


def answer_in(found: Body, role: str, endpoint: Endpoint, body: Body) -> Answer:
    """The answer that an unstreamed response holds. Raises :class:`CheckFailed`."""
    try:
        must_hold(role, body, found.get("choices") or ())
        return from_response(found, endpoint)
    except (LookupError, TypeError, AttributeError) as problem:
        raise no_answer(role, f"{type(problem).__name__} {problem} in {found!r:.400}") from problem


def must_hold(role: str, body: Body, pieces: Iterable[Json]) -> None:
    """Raises :class:`CheckFailed` for what was asked for and did not come.

    ``pieces``: choices as they came, those of a stream one after the other.
    """
    told = {**body, **(body.get("sampling_params") or {})}
    scores = told.get("logprobs") not in (None, False)
    for index, parts in _by_index(pieces).items():
        said = any(part.get("finish_reason") or _says_something(part) for part in parts)
        known = any(part.get("token_ids") is not None for part in parts)
        if told.get("return_token_ids") and said and not known:
            raise _dropped(role, "token ids", index)
        scored = any(part.get("logprobs") for part in parts)
        if scores and not scored and any(map(_says_something, parts)):
            raise _dropped(role, "log-probabilities", index)


def no_answer(role: str, problem: object) -> CheckFailed:
    """The error for a success that cannot be read."""
    return CheckFailed(f"HTTP 200 from the {role} server, but no answer: {problem}")


def _by_index(pieces: Iterable[Json]) -> dict[int, list[Json]]:
    found: dict[int, list[Json]] = {}
    for piece in pieces:
        found.setdefault(int(piece.get("index") or 0), []).append(piece)
    return found


def _says_something(piece: Json) -> bool:
    message = piece.get("message") or piece.get("delta") or {}
    return bool(piece.get("token_ids") or piece.get("text") or message.get("content"))


def _dropped(role: str, what: str, index: int) -> CheckFailed:
    return CheckFailed(
        f"the {role} server was asked for {what}, and choice {index} of its answer has none: does "
        "something between drop fields that it does not know?"
    )
