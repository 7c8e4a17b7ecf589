"""Requests that are under way at the same time: each has to get the answer to its own prompt.

All these answers differ: a model that answers two prompts alike proves nothing here.
"""

from __future__ import annotations

from collections.abc import Sequence

from conformance import expect
from conformance.case import Case
from conformance.client import Body
from conformance.pair import Exchange
from conformance.proof_of_many import crossed


def must_differ(case: Case, bodies: Sequence[Body]) -> None:
    """Raises unless the reference answers every two of these differently."""
    answers = [case.pair.expected("completions", body) for body in bodies]
    alike = len(answers) - len({answer.token_ids for answer in answers})
    expect.equal(alike, 0, "prompts that the reference answers as it does another")


def nobody_got_anothers(case: Case, bodies: Sequence[Body], exchange: Exchange) -> None:
    """No answer may be the reference's answer to another of the prompts."""
    expected = [case.pair.expected("completions", body) for body in bodies]
    found = crossed(case, expected, [legs.decode for legs in exchange.legs])
    case.saw("requests that got the answer to another, as (request, other)", found)
    expect.equal(found, [], "requests that got the answer to another's prompt")
