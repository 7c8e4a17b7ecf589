"""Decode was served something, and it does not hold what it should."""

from __future__ import annotations

from conformance.conclusion import Diagnosis, no, unknown
from conformance.evidence import Outcome, Rung
from conformance.seen import Seen


def recomputed_in_part(seen: Seen) -> Diagnosis | None:
    if seen.external >= seen.promised:
        return None
    return no(
        "partial",
        f"decode was served {seen.external} of the {seen.promised} tokens that should have come "
        f"({seen.prompt_tokens} in the prompt), and computed the rest",
        "was P's KV stored in time, and evicted by nobody? See both logs",
    )


def broken_books(seen: Seen) -> Diagnosis | None:
    if seen.outcome(Rung.ACCOUNTING) is not Outcome.BROKEN:
        return None
    return no("broken_books", seen.summary(Rung.ACCOUNTING), "see decode's counters")


def insensitive(seen: Seen) -> Diagnosis | None:
    if not seen.insensitive:
        return None
    return unknown(
        "insensitive_model",
        "the model answers different prompts alike, so its answers prove nothing",
        "probe with another model",
    )


def unused(seen: Seen) -> Diagnosis | None:
    if seen.outcome(Rung.CAUSALITY) is not Outcome.RECOMPUTED:
        return None
    return no(
        "claimed",
        f"decode counts {seen.external} transferred tokens, but another prompt's KV does not "
        "change its answer: it does not use what it is given",
        "see what its connector does with the blocks that it reports as loaded",
    )


def wrong_answer(seen: Seen) -> Diagnosis | None:
    if seen.outcome(Rung.PARITY) is not Outcome.BROKEN:
        return None
    return no(
        "wrong_answer",
        "KV arrives, and the answer is not the one that decode gives alone: "
        f"{seen.summary(Rung.PARITY)}",
        "the KV is damaged on its way, or belongs to another model; see both logs",
    )


def not_moved(seen: Seen) -> Diagnosis | None:
    if seen.outcome(Rung.MOVEMENT) is not Outcome.RECOMPUTED:
        return None
    words = f"decode counts a transfer, and its connector does not: {seen.summary(Rung.MOVEMENT)}"
    return no("not_moved", words, "is it the right --connector?")


def blind(seen: Seen) -> Diagnosis | None:
    blind = [step for step in seen.steps if step.outcome is Outcome.BLIND]
    if not blind:
        return None
    return unknown("blind", blind[0].summary, "see what decode counts without any handoff")


def no_oracle(seen: Seen) -> Diagnosis | None:
    if not seen.no_oracle:
        return None
    return unknown(
        "no_oracle",
        f"{seen.external} of {seen.prompt_tokens} prompt tokens came from outside, but it cannot "
        f"be told whether the answer is right: {seen.no_oracle}",
        "",
    )
