"""What single requests have to have come to, beside those whose whole ladder is climbed."""

from __future__ import annotations

from conformance import expect
from conformance.answer import Answer
from conformance.case import Case
from conformance.client import Body
from conformance.metrics import TokenSources
from conformance.pair import Exchange


def transferred(case: Case, body: Body, exchange: Exchange) -> None:
    """Decode knew nothing of the prompt, and got what its connector promises; the sum is right."""
    sources = TokenSources.of(exchange.decode_delta)
    length = len(body["prompt"])
    case.saw("sources on decode", vars(sources))
    expect.equal(sources.local_cache_hit, 0, "local_cache_hit of decode")
    expect.equal(sources.total, length, "sum of decode's sources")
    enough(case, sources, length)


def enough(case: Case, sources: TokenSources, length: int) -> None:
    """As much came from outside as the profile promises for a cold prompt of that length."""
    promised = case.pair.profile.granularity.promised(length, case.block)
    expect.true(sources.external >= promised, f"at least {promised} should be external", sources)


def right(case: Case, body: Body, answer: Answer, whose: str = "the answer") -> None:
    """The token ids are those of the oracle, and there are some."""
    expected = case.pair.expected("completions", body)
    expect.not_empty(answer.token_ids, f"the list of token ids of {whose}")
    expect.equal(answer.token_ids, expected.token_ids, f"token ids of {whose}")
