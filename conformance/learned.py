"""What the oracle answers to a prompt, for requests that are cut to that very answer.

A stop string has to occur in it, a penalty has to change it: a request that leaves the answer as
it was proves nothing of the field it carries.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from conformance.case import Case
from conformance.client import Body, Endpoint
from conformance.errors import NotHere, SuiteError
from conformance.ladder import PROVEN
from conformance.parity import compare

# So many prompts are tried before one is said not to exist.
ATTEMPTS = 16


def first_token(case: Case, body: Body) -> int:
    """The first token of the oracle's answer to a completion."""
    return case.pair.expected("completions", {**body, "max_tokens": 1}).token_ids[0]


def pieces(case: Case, body: Body) -> list[str]:
    """The texts of the tokens of the oracle's answer to a completion, as far as they add up.

    A token that is part of a character only has no text of its own.
    """
    named = {**body, "logprobs": 0, "return_tokens_as_token_ids": False}
    answer = case.pair.expected("completions", named)
    found: list[str] = []
    for piece in answer.raw["choices"][0]["logprobs"]["tokens"]:
        if not answer.text.startswith("".join([*found, piece])):
            break
        found.append(piece)
    return found


def without(body: Body, *fields: str) -> Body:
    """A body less some of its fields."""
    return {key: value for key, value in body.items() if key not in fields}


def matters(case: Case, endpoint: Endpoint, body: Body, *fields: str) -> bool:
    """Whether the oracle answers otherwise than without these fields."""
    bare, whole = (case.pair.expected(endpoint, made) for made in (without(body, *fields), body))
    return not compare(bare, whole, case.pair.model.dtype).equal


def must_matter(case: Case, endpoint: Endpoint, body: Body, *fields: str) -> None:
    """The oracle answers otherwise without these fields. Raises :class:`SuiteError`."""
    named, seen = ", ".join(fields), matters(case, endpoint, body, *fields)
    case.saw(f"whether the reference answers otherwise without {named}", seen)
    if not seen:
        raise SuiteError(
            f"the reference answers the same without {named}, so this prompt proves nothing of "
            "it: try another --seed"
        )


def bodies(
    case: Case,
    length: int,
    make: Callable[[list[int]], Body],
    holds: Callable[[Body], bool],
    what: str,
) -> Callable[[int], Body]:
    """Bodies by variant for an ask; the proof's is of a prompt for which it holds."""

    def body(variant: int) -> Body:
        def attempt(number: int) -> Body:
            return make(case.ids(length, variant, number))

        return sought(attempt, holds, what) if variant == PROVEN else attempt(0)

    return body


def sought(make: Callable[[int], Body], holds: Callable[[Body], bool], what: str) -> Body:
    """The first body of those that ``make`` makes of 0, 1, 2, … for which it holds.

    Raises :class:`SuiteError` when none does: what is sought is then not to be had of the model.
    """
    for attempt in range(ATTEMPTS):
        body = make(attempt)
        if holds(body):
            return body
    raise SuiteError(f"of {ATTEMPTS} prompts none {what}: choose another model with --model")


def end_of_sequence(case: Case) -> int:
    """The token that ends an answer, from the model's ``config.json``.

    Raises :class:`NotHere` where that file is out of reach: no endpoint of vLLM 0.32.0 tells it.
    """
    problem: Exception | None = None
    for folder in _folders(case):
        try:
            text = (Path(folder) / "config.json").read_text(encoding="utf-8")
            found = json.loads(text)["eos_token_id"]
            return int(found[0] if isinstance(found, list) else found)
        except (OSError, ValueError, LookupError, TypeError) as unreadable:
            problem = unreadable
    raise NotHere(
        "which token ends an answer is not known: it is read from config.json in the model's "
        f"folder, and that is out of reach here ({problem})"
    )


def _folders(case: Case) -> Iterator[str]:
    """Where the model may lie: what our servers are given, and what others say of theirs."""
    yield case.pair.model.source
    page = case.pair.decode.page("/v1/models")
    for card in page.json().get("data", ()) if page.status_code == 200 else ():
        if card.get("root"):
            yield str(card["root"])
