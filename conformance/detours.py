"""Requests that need not end in a transfer: some have to be computed anew, some may be refused.

Either is told apart from a silent recompute: the first names the reason for which the engine leaves
the KV aside, the second is an HTTP error that names the field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from conformance import expect
from conformance.case import Case
from conformance.client import Rejected
from conformance.errors import ReferenceFailed, Refused
from conformance.evidence import Outcome, Proof, Rung, Step
from conformance.held import lets_go
from conformance.ladder import Climbed, accounting, control, excused, parity
from conformance.metrics import TokenSources
from conformance.pair import Ask

# The variant that finds out; a proof takes others.
TRIED = 9


def prove_or_recomputed(case: Case, ask: Ask, why: str) -> Climbed:
    """Prove a request which the engine may compute anew, all of it, for the reason ``why``.

    Then nothing moves and the answer is still the reference's; P lets go of what nobody fetched.
    """
    body = ask.body(TRIED)
    expected = case.pair.expected(ask.endpoint, body)
    with lets_go(case, case.pair.prefill):
        exchange = case.pair.exchange(ask, body)
    sources = TokenSources.of(exchange.decode_delta)
    if sources.external:
        return case.prove(ask)
    legs = exchange.legs[0]
    proof = Proof(subject=ask.subject)
    case.evidence.proofs.append(proof)
    proof.steps += [
        _recomputed(sources, expected.prompt_tokens, why),
        excused(Rung.MOVEMENT, "nothing moves: see accounting"),
        excused(Rung.CAUSALITY, "no KV is used: see accounting"),
        parity(expected, legs.decode, case.pair.model.dtype),
        control(case.pair, ask),
    ]
    return Climbed(proof, expected, legs)


@contextmanager
def may_be_refused(case: Case, field: str) -> Iterator[None]:
    """Within it, an HTTP 4xx that names the field is no failure but not supported.

    Raises :class:`Refused` with the server's words.
    """
    try:
        yield
    except (Rejected, ReferenceFailed) as problem:
        refusal = problem if isinstance(problem, Rejected) else problem.__cause__
        if not isinstance(refusal, Rejected) or refusal.status >= 500:
            raise
        case.saw(f"the answer to {field}", {"status": refusal.status, "body": refusal.body})
        named = re.search(rf"\b{field}\b", str(refusal.body)) is not None
        expect.true(named, f"the error should name {field}", refusal.body)
        raise Refused(f"{field} is refused: {refusal}") from problem


def _recomputed(sources: TokenSources, prompt_tokens: int, why: str) -> Step:
    """Accounting of a request of which decode computed every prompt token, as it has to."""
    if sources.local_compute != prompt_tokens:
        return accounting(sources, prompt_tokens, prompt_tokens)
    return Step(
        name=Rung.ACCOUNTING,
        outcome=Outcome.NOT_APPLICABLE,
        summary=f"decode computed all of {prompt_tokens} tokens, as it has to: {why}",
        figures={**vars(sources), "excuse": True},
    )
