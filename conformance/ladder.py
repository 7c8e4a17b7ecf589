"""Climbs the evidence ladder for one request.

Three variants of the request are sent: one that is proven, one without the handoff (the
control), one whose KV is another's or damaged (causality). Nothing here raises for what a
connector does wrong: it becomes the outcome of a step, and ``verdict.decide`` reads it.
"""

from __future__ import annotations

from dataclasses import dataclass

from conformance.answer import REFERENCE, Answer, Transcript
from conformance.bodies import shortest
from conformance.causality import OUT_OF_REACH, causality
from conformance.evidence import Outcome, Proof, Rung, Step
from conformance.metrics import Meter, TokenSources
from conformance.pair import Ask, Exchange, Legs, Pair
from conformance.parity import compare
from conformance.profile import Movement

PROVEN, CONTROL = 0, 1


@dataclass(frozen=True)
class Climbed:
    """A proof, and the answers it was made of, for what a check asserts beyond it."""

    proof: Proof
    expected: Answer
    legs: Legs

    @property
    def answer(self) -> Answer:
        """What the client of the pair was answered."""
        return self.legs.decode

    @property
    def transcript(self) -> Transcript:
        """The streamed answer as it came; only for asks that stream."""
        assert self.legs.transcript is not None
        return self.legs.transcript


def climb(pair: Pair, ask: Ask, proof: Proof) -> Climbed:
    """All five steps for one ask, recorded into ``proof`` as they are taken."""
    body = ask.body(PROVEN)
    expected = pair.expected(ask.endpoint, body)
    stored = bytes_stored(pair)
    exchange = pair.exchange(ask, body)
    promised = pair.profile.granularity.promised(expected.prompt_tokens, pair.block_size)
    sources = TokenSources.of(exchange.decode_delta)
    proof.steps.append(accounting(sources, expected.prompt_tokens, promised))
    proof.steps.append(movement(pair, exchange, bytes_stored(pair) - stored, promised))
    proof.steps.append(causality(pair, ask, promised))
    proof.steps.append(parity(expected, exchange.legs[0].decode, pair.model.dtype))
    proof.steps.append(control(pair, ask))
    return Climbed(proof, expected, exchange.legs[0])


def accounting(
    sources: TokenSources, prompt_tokens: int, promised: int, *, cold: bool = True
) -> Step:
    """Step 1: decode's counters account for the prompt, and enough of it came from outside.

    With ``cold=False``, tokens found in decode's own prefix cache count as covered.
    """
    figures: dict[str, object] = {
        "prompt_tokens": prompt_tokens,
        "promised_external": promised,
        "external_kv_transfer": sources.external,
        "local_compute": sources.local_compute,
        "local_cache_hit": sources.local_cache_hit,
    }
    seen = f"external={sources.external} of {prompt_tokens} tokens"
    covered = sources.external if cold else sources.external + sources.local_cache_hit
    if sources.total != prompt_tokens or min(sources.external, sources.local_compute) < 0:
        summary = f"sources sum to {sources.total}, but the prompt has {prompt_tokens} tokens"
        return _step(Rung.ACCOUNTING, Outcome.BROKEN, summary, figures)
    if cold and sources.local_cache_hit:
        summary = f"{sources.local_cache_hit} tokens were in decode's own cache: not a cold prompt"
        return _step(Rung.ACCOUNTING, Outcome.BLIND, summary, figures)
    if covered < promised:
        summary = f"{seen}, but should be at least {promised}: decode recomputed the rest"
        return _step(Rung.ACCOUNTING, Outcome.RECOMPUTED, summary, figures)
    if promised == 0:
        summary = f"{seen}: the connector promises nothing at this length"
        return _step(Rung.ACCOUNTING, Outcome.NOT_APPLICABLE, summary, {**figures, "excuse": True})
    return _step(Rung.ACCOUNTING, Outcome.HELD, seen, figures)


def movement(pair: Pair, exchange: Exchange, stored: int, promised: int) -> Step:
    """Step 2: the connector's own record of the transfer moved, on the right side.

    ``stored``: bytes that appeared in the profile's shared folders meanwhile.
    """
    if not pair.profile.movement:
        return excused(Rung.MOVEMENT, "the connector keeps no record of bytes or operations")
    records = [r for r in pair.profile.movement if not r.files or r.files in pair.folders]
    if not records:
        return excused(Rung.MOVEMENT, f"it shows in files only, and {OUT_OF_REACH}")
    moved = {_label(record): _moved(exchange, record, stored) for record in records}
    due = [_label(r) for r in records if _is_due(r, exchange, promised, pair.block_size)]
    summary = ", ".join(f"{label}: {amount:.0f}" for label, amount in moved.items())
    figures: dict[str, object] = dict(moved)
    if all(moved[label] > 0 for label in due) and any(moved.values()):
        return _step(Rung.MOVEMENT, Outcome.HELD, summary, figures)
    if not due:
        return excused(Rung.MOVEMENT, "nothing is promised to move at this length", figures)
    return _step(Rung.MOVEMENT, Outcome.RECOMPUTED, f"did not move: {summary}", figures)


def parity(expected: Answer, seen: Answer, dtype: str) -> Step:
    """Step 4: the answer is the reference's, token by token; of the same tokens, the same text."""
    found = compare(expected, seen, dtype)
    figures = found.figures()
    by = "" if expected.given_by == REFERENCE else f", against {expected.given_by}"
    if by:
        figures["oracle"] = expected.given_by
    spelled_alike = found.first_difference is not None or expected.text == seen.text
    if found.equal and spelled_alike:
        return _step(Rung.PARITY, Outcome.HELD, found.describe() + by, figures)
    if found.equal:
        texts = f"{expected.text!r:.60}, but was {seen.text!r:.60}"
        summary = f"the reference's tokens, but not its text: it should be {texts}{by}"
        return _step(Rung.PARITY, Outcome.BROKEN, summary, figures)
    figures |= {
        "expected_token_ids": list(expected.token_ids[:32]),
        "seen_token_ids": list(seen.token_ids[:32]),
    }
    summary = f"not the reference's answer: {found.describe()}{by}"
    return _step(Rung.PARITY, Outcome.BROKEN, summary, figures)


def control(pair: Pair, ask: Ask) -> Step:
    """Step 5: without the handoff, the same decode server computes everything itself."""
    meter = Meter.on(pair.decode)
    answer, _ = pair.decode_leg(ask.endpoint, shortest(ask.endpoint, ask.body(CONTROL)))
    sources = TokenSources.of(meter.delta())
    figures: dict[str, object] = {"prompt_tokens": answer.prompt_tokens, **vars(sources)}
    if sources.local_compute == answer.prompt_tokens:
        summary = f"all {sources.local_compute} tokens computed locally without the handoff"
        return _step(Rung.CONTROL, Outcome.HELD, summary, figures)
    summary = (
        f"local_compute={sources.local_compute} without any handoff, but should be "
        f"{answer.prompt_tokens}: these counters cannot tell a transfer from none"
    )
    return _step(Rung.CONTROL, Outcome.BLIND, summary, figures)


def bytes_stored(pair: Pair) -> int:
    """Bytes now in the folders where the profile says that movement shows."""
    folders = {record.files for record in pair.profile.movement if record.files in pair.folders}
    return sum(sum(pair.stored_files(folder).values()) for folder in folders if folder)


def excused(name: Rung, why: str, figures: dict[str, object] | None = None) -> Step:
    """A step that cannot be taken here, and why."""
    return _step(name, Outcome.NOT_APPLICABLE, why, figures or {})


def _is_due(record: Movement, exchange: Exchange, promised: int, block_size: int) -> bool:
    """Whether a record has to move: by what the pair promises, or by a child's own granularity."""
    if record.granularity is None:
        return promised > 0
    lengths = [legs.decode.prompt_tokens for legs in exchange.legs]
    return any(record.granularity.promised(length, block_size) for length in lengths)


def _moved(exchange: Exchange, record: Movement, stored: int) -> float:
    if record.files:
        return stored
    delta = exchange.prefill_delta if record.side == "prefill" else exchange.decode_delta
    return delta.total(record.metric or "", **record.labels)


def _label(record: Movement) -> str:
    what = record.metric or f"{record.unit} in {record.files}"
    what += "".join(f" {name}={value}" for name, value in record.labels.items())
    return f"{what} ({record.side})"


def _step(name: Rung, outcome: Outcome, summary: str, figures: dict[str, object]) -> Step:
    return Step(name=name, outcome=outcome, summary=summary, figures=figures)
