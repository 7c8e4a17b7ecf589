"""Sampling: what chooses a token on D is what chooses it on one server.

P samples one token, and D samples it again: a generator that went on from P's state, or a penalty
that counts P's token or forgets P's prompt, changes the answer. No report of such a difference is
known; nothing else would show one.
"""

from collections.abc import Callable
from typing import Any

from conformance import expect
from conformance.case import Case
from conformance.client import Body, Endpoint
from conformance.ladder import PROVEN
from conformance.learned import (
    bodies,
    end_of_sequence,
    first_token,
    matters,
    must_matter,
    pieces,
    without,
)
from conformance.pair import Ask, chat, completion
from conformance.registry import check

SAMPLED: dict[str, Any] = {"temperature": 1.0, "seed": 7}
NARROWED: dict[str, Any] = {"temperature": 1.4, "top_p": 0.8, "top_k": 4, "min_p": 0.01}
PENALTIES = {"presence_penalty": 1.5, "frequency_penalty": 1.5, "repetition_penalty": 1.6}
BANNED = -100.0


def _length(case: Case) -> int:
    return 2 * case.block + 5


@check(
    "sampling/seed",
    feature="sampling",
    cases=("completions", "chat", "top-p and top-k"),
    core_cases=("completions",),
)
def test_a_seed_gives_the_references_answer(case: Case) -> None:
    """An answer sampled with a seed is the one that the reference samples with that seed."""
    narrowed = NARROWED if case.name.startswith("top") else {}
    endpoint: Endpoint = "chat/completions" if case.name == "chat" else "completions"

    def body(variant: int) -> Body:
        if case.name == "chat":
            return chat(case.text(2 * case.block, variant), max_tokens=12, **SAMPLED)
        return completion(case.ids(_length(case), variant), 12, **{**SAMPLED, **narrowed})

    must_matter(case, endpoint, body(PROVEN), "temperature", "seed", *narrowed)
    case.prove(Ask(f"sampled answer, {case.name}", endpoint, body))


@check(
    "sampling/penalty",
    feature="sampling",
    level="extended",
    cases=tuple(name.split("_")[0] for name in PENALTIES),
)
def test_penalties_count_the_prompt_and_what_was_said(case: Case) -> None:
    """A penalty counts P's prompt and D's own answer, and not the token that P has sampled.

    The answer is confined to a few tokens, half of them from the prompt, so that they recur; and
    the prompt is one whose first token would be another if the penalty did not see the prompt
    (repetition) or saw P's token as said (presence, frequency).
    """
    field = f"{case.name}_penalty"
    body = bodies(
        case,
        _length(case),
        lambda ids: _penalized(case, ids, field),
        _penalty_shows(case, field),
        "shows by its first token what a penalty counts",
    )
    must_matter(case, "completions", body(PROVEN), field)
    case.prove(Ask(f"completion with a {case.name} penalty", "completions", body))


@check("sampling/logit-bias", feature="sampling", level="extended")
def test_a_banned_token_is_not_said(case: Case) -> None:
    """A token that logit_bias bans is not in the answer, though it would have come first."""

    def banned(variant: int) -> int:
        return first_token(case, completion(case.ids(_length(case), variant)))

    def body(variant: int) -> Body:
        bias = {str(banned(variant)): BANNED}
        return completion(case.ids(_length(case), variant), logit_bias=bias)

    climbed = case.prove(Ask("completion with a banned token", "completions", body))
    _must_not_say(case, climbed.answer.token_ids, {banned(PROVEN)})


@check("sampling/bad-words", feature="sampling", level="extended")
def test_a_bad_word_is_not_said(case: Case) -> None:
    """A bad word is not in the answer, though it would have been."""
    body = bodies(
        case,
        _length(case),
        lambda ids: _without_a_word(case, completion(ids)),
        lambda made: "bad_words" in made,
        "has a word that bad_words can take out of its answer",
    )
    climbed = case.prove(Ask("completion with a bad word", "completions", body))
    plain = case.pair.expected("completions", without(body(PROVEN), "bad_words"))
    expect.true(climbed.answer.text != plain.text, "the answer should change", plain.text)


@check("sampling/allowed-tokens", feature="sampling", level="extended")
def test_only_allowed_tokens_are_said(case: Case) -> None:
    """With allowed_token_ids, the answer is made of these tokens alone."""

    def body(variant: int) -> Body:
        ids = case.ids(_length(case), variant)
        return completion(ids, allowed_token_ids=_few_tokens(case, ids))

    climbed = case.prove(Ask("completion of few tokens", "completions", body))
    allowed = set(body(PROVEN)["allowed_token_ids"])
    said = set(climbed.answer.token_ids)
    case.saw("tokens of the answer, allowed tokens", (sorted(said), sorted(allowed)))
    expect.true(said <= allowed, "the answer should be of allowed tokens", sorted(said - allowed))


@check("sampling/min-tokens", feature="sampling")
def test_min_tokens_is_for_decode_alone(case: Case) -> None:
    """Decode answers at least min_tokens, though a stop token would have come before.

    A router must not send min_tokens to P, which is asked for one token: P refuses it clearly.
    """
    least = 8

    def body(variant: int) -> Body:
        made = completion(case.ids(_length(case), variant), max_tokens=12)
        return {**made, "min_tokens": least, "stop_token_ids": [first_token(case, made)]}

    must_matter(case, "completions", body(PROVEN), "min_tokens")
    climbed = case.prove(Ask("completion with min_tokens", "completions", body))
    said = len(climbed.answer.token_ids)
    expect.true(said >= least, f"tokens of the answer should be at least {least}", said)
    refused = case.pair.prefill.send("completions", {**body(3), "max_tokens": 1})
    seen = {"status": refused.status_code, "body": refused.text[:300]}
    case.saw("P asked for one token and at least eight", seen)
    expect.equal(refused.status_code, 400, "HTTP status of min_tokens above max_tokens")
    expect.true("min_tokens" in refused.text, "the error should name min_tokens", seen)


@check("sampling/max-tokens-1", feature="sampling")
def test_one_token_is_decodes_own(case: Case) -> None:
    """A request for one token is answered by D from the transferred KV, with that one token."""
    ask = Ask(
        "completion of one token",
        "completions",
        lambda variant: completion(case.ids(_length(case), variant), max_tokens=1),
    )
    climbed = case.prove(ask)
    expect.equal(climbed.answer.finish_reason, "length", "finish_reason")
    expect.equal(climbed.answer.usage.get("completion_tokens"), 1, "completion_tokens")


@check("sampling/ignore-eos", feature="sampling", level="extended")
def test_the_end_of_sequence_is_ignored(case: Case) -> None:
    """With ignore_eos, the answer goes on after the end-of-sequence token to max_tokens."""
    end = end_of_sequence(case)

    def made(ids: list[int]) -> Body:
        allowed = [end, *_few_tokens(case, ids)]
        return completion(ids, 16, allowed_token_ids=allowed, ignore_eos=True)

    body = bodies(
        case,
        _length(case),
        made,
        lambda whole: matters(case, "completions", whole, "ignore_eos"),
        "is answered with an end of sequence before its limit",
    )
    climbed = case.prove(Ask("completion past its end", "completions", body))
    said = climbed.answer.token_ids
    expect.equal(climbed.answer.finish_reason, "length", "finish_reason")
    expect.true(end in said[:-1], "the answer should go on past its end", said)


def _penalized(case: Case, ids: list[int], field: str) -> Body:
    body = completion(ids, 16, allowed_token_ids=_few_tokens(case, ids))
    return {**body, field: PENALTIES[field]}


def _few_tokens(case: Case, ids: list[int]) -> list[int]:
    """Three tokens of the prompt and three others."""
    within = list(dict.fromkeys(ids))[:3]
    return within + [t for t in dict.fromkeys(case.ids(64, "others")) if t not in ids][:3]


def _penalty_shows(case: Case, field: str) -> Callable[[Body], bool]:
    def shows(body: Body) -> bool:
        bare = without(body, field)
        said = first_token(case, bare)
        counted = {**bare, "logit_bias": {str(said): -PENALTIES[field]}}
        other = body if field == "repetition_penalty" else counted
        return first_token(case, other) != said and matters(case, "completions", body, field)

    return shows


def _without_a_word(case: Case, body: Body) -> Body:
    """The body that bans a word of the oracle's answer, or as it was if none can be banned."""
    for piece in pieces(case, body):
        word = piece.strip()
        banned = {**body, "bad_words": [word]}
        if word.isascii() and word.isalnum() and matters(case, "completions", banned, "bad_words"):
            return banned
    return body


def _must_not_say(case: Case, said: tuple[int, ...], banned: set[int]) -> None:
    case.saw("tokens of the answer, banned tokens", (said, sorted(banned)))
    expect.true(not banned & set(said), f"the answer should be without {sorted(banned)}", said)
