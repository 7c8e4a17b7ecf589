"""Climbs the evidence ladder for one request.

Three variants of the request are sent: one that is proven, one without the handoff (the
control), one whose KV is another's or damaged (causality). Nothing here raises for what a
connector does wrong: it becomes the outcome of a step, and ``verdict.decide`` reads it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from conformance.answer import Answer, Transcript
from conformance.client import Body
from conformance.damage import permute_elements
from conformance.evidence import Outcome, Proof, Rung, Step
from conformance.metrics import Meter, TokenSources
from conformance.pair import Ask, Exchange, Pair, completion
from conformance.parity import compare
from conformance.profile import Movement

PROVEN, CONTROL, CAUSALITY = 0, 1, 2


@dataclass(frozen=True)
class Climbed:
    """A proof, and the answers it was made of, for what a check asserts beyond it."""

    proof: Proof
    expected: Answer
    answer: Answer
    exchange: Exchange

    @property
    def transcript(self) -> Transcript:
        """The streamed answer as it came; only for asks that stream."""
        assert self.exchange.transcript is not None
        return self.exchange.transcript


def climb(pair: Pair, ask: Ask, proof: Proof) -> Climbed:
    """All five steps for one ask, recorded into ``proof`` as they are taken."""
    body = ask.body(PROVEN)
    expected = pair.expected(ask.endpoint, body)
    files_before = _files(pair)
    exchange = pair.exchange(ask.endpoint, body, stream=ask.stream)
    sources = TokenSources.of(exchange.decode_delta)
    promised = pair.profile.granularity.promised(expected.prompt_tokens, pair.block_size)
    proof.steps.append(accounting(sources, expected.prompt_tokens, promised))
    proof.steps.append(_movement(pair, exchange, files_before, promised))
    proof.steps.append(_causality(pair, ask, promised))
    proof.steps.append(parity(expected, exchange.decode, pair.model.dtype))
    proof.steps.append(_control(pair, ask))
    return Climbed(proof, expected, exchange.decode, exchange)


def accounting(sources: TokenSources, prompt_tokens: int, promised: int) -> Step:
    """Step 1: decode's counters account for the prompt, and enough of it came from outside."""
    figures = {
        "prompt_tokens": prompt_tokens,
        "promised_external": promised,
        "external_kv_transfer": sources.external,
        "local_compute": sources.local_compute,
        "local_cache_hit": sources.local_cache_hit,
    }
    seen = f"external={sources.external} of {prompt_tokens} tokens"
    if sources.total != prompt_tokens or min(sources.external, sources.local_compute) < 0:
        summary = f"sources sum to {sources.total}, but the prompt has {prompt_tokens} tokens"
        return _step(Rung.ACCOUNTING, Outcome.BROKEN, summary, figures)
    if sources.local_cache_hit:
        summary = f"{sources.local_cache_hit} tokens were in decode's own cache: not a cold prompt"
        return _step(Rung.ACCOUNTING, Outcome.BLIND, summary, figures)
    if sources.external < promised:
        summary = f"{seen}, but should be at least {promised}: decode recomputed the rest"
        return _step(Rung.ACCOUNTING, Outcome.RECOMPUTED, summary, figures)
    if promised == 0:
        figures["excuse"] = True
        summary = f"{seen}: the connector promises nothing below one whole block"
        return _step(Rung.ACCOUNTING, Outcome.NOT_APPLICABLE, summary, figures)
    return _step(Rung.ACCOUNTING, Outcome.HELD, seen, figures)


def parity(expected: Answer, seen: Answer, dtype: str) -> Step:
    """Step 4: the answer is the reference's, token by token."""
    found = compare(expected, seen, dtype)
    figures = found.figures()
    if found.equal:
        return _step(Rung.PARITY, Outcome.HELD, found.describe(), figures)
    figures |= {
        "expected_token_ids": list(expected.token_ids[:32]),
        "seen_token_ids": list(seen.token_ids[:32]),
    }
    summary = f"not the reference's answer: {found.describe()}"
    return _step(Rung.PARITY, Outcome.BROKEN, summary, figures)


def _movement(pair: Pair, exchange: Exchange, files_before: int, promised: int) -> Step:
    """Step 2: the connector's own record of the transfer moved, on the right side."""
    sources = pair.profile.movement
    if not sources:
        return _excused(Rung.MOVEMENT, "the connector keeps no record of bytes or operations")
    moved = {_label(source): _moved(pair, exchange, source, files_before) for source in sources}
    summary = ", ".join(f"{label}: {amount:.0f}" for label, amount in moved.items())
    if all(amount > 0 for amount in moved.values()):
        return _step(Rung.MOVEMENT, Outcome.HELD, summary, dict(moved))
    if promised == 0:
        return _excused(Rung.MOVEMENT, "nothing to move below one whole block", dict(moved))
    return _step(Rung.MOVEMENT, Outcome.RECOMPUTED, f"did not move: {summary}", dict(moved))


def _moved(pair: Pair, exchange: Exchange, source: Movement, files_before: int) -> float:
    if source.files:
        return sum(pair.stored_files(source.files).values()) - files_before
    delta = exchange.prefill_delta if source.side == "prefill" else exchange.decode_delta
    return delta.total(source.metric or "")


def _label(source: Movement) -> str:
    what = source.metric or f"{source.unit} in {source.files}"
    return f"{what} ({source.side})"


def _files(pair: Pair) -> int:
    return sum(
        sum(pair.stored_files(source.files).values())
        for source in pair.profile.movement
        if source.files
    )


def _control(pair: Pair, ask: Ask) -> Step:
    """Step 5: without the handoff, the same decode server computes everything itself."""
    meter = Meter.on(pair.decode.counters)
    answer, _ = pair.decode_leg(ask.endpoint, _short(ask.body(CONTROL)), None)
    sources = TokenSources.of(meter.delta(1))
    figures = {"prompt_tokens": answer.prompt_tokens, **vars(sources)}
    if sources.local_compute == answer.prompt_tokens:
        summary = f"all {sources.local_compute} tokens computed locally without the handoff"
        return _step(Rung.CONTROL, Outcome.HELD, summary, figures)
    summary = (
        f"external={sources.external} tokens without any handoff, but should be 0: "
        "these counters cannot tell a transfer from none"
    )
    return _step(Rung.CONTROL, Outcome.BLIND, summary, figures)


def _causality(pair: Pair, ask: Ask, promised: int) -> Step:
    """Step 3: decode's answer depends on the transferred KV."""
    if promised == 0:
        return _excused(Rung.CAUSALITY, "no KV is promised at this length")
    body = ask.body(CAUSALITY)
    clean = pair.expected(ask.endpoint, body)
    if clean.prompt_tokens < 2:
        return _excused(Rung.CAUSALITY, "decode computes the only token itself")
    if pair.profile.causality.method == "damage_files":
        return _damaged(pair, ask, body, clean)
    return _swapped(pair, ask, body, clean)


def _damaged(pair: Pair, ask: Ask, body: Body, clean: Answer) -> Step:
    folder = pair.profile.causality.dir or ""
    before = set(pair.stored_files(folder))
    pair.prefill_leg(ask.endpoint, body)
    stored = sorted(set(pair.stored_files(folder)) - before)
    for path in stored:
        permute_elements(path)
    answer, _ = pair.decode_leg(ask.endpoint, body, None)
    return _changed(pair, clean, answer, {"damaged_files": len(stored)}, "the stored KV damaged")


def _swapped(pair: Pair, ask: Ask, body: Body, clean: Answer) -> Step:
    donor = pair.prompts.sibling(list(clean.prompt_token_ids), ask.subject, "donor")
    donor_body = completion(donor, max_tokens=1)
    _, params = pair.prefill_leg("completions", donor_body)
    answer, _ = pair.decode_leg(ask.endpoint, body, params)
    figures: dict[str, object] = {"donor_tokens": len(donor)}
    if ask.endpoint == "completions":
        donated = pair.expected("completions", {**body, "prompt": donor})
        figures["follows_donor"] = compare(donated, answer, pair.model.dtype).equal
    return _changed(pair, clean, answer, figures, "another prompt's KV")


def _changed(
    pair: Pair, clean: Answer, answer: Answer, figures: dict[str, object], cause: str
) -> Step:
    found = compare(clean, answer, pair.model.dtype)
    figures |= found.figures()
    if found.equal:
        summary = f"the answer is unchanged by {cause}: decode does not use what it is given"
        return _step(Rung.CAUSALITY, Outcome.RECOMPUTED, summary, figures)
    follows = ", into the donor's own answer" if figures.get("follows_donor") else ""
    return _step(Rung.CAUSALITY, Outcome.HELD, f"{cause} changes the answer{follows}", figures)


def _short(body: Body) -> Body:
    one = {**body, "max_tokens": 1}
    return {key: value for key, value in one.items() if key not in ("stream_options", "min_tokens")}


def _step(name: Rung, outcome: Outcome, summary: str, figures: dict[str, object]) -> Step:
    return Step(name=name, outcome=outcome, summary=summary, figures=figures)


def _excused(name: Rung, why: str, figures: dict[str, object] | None = None) -> Step:
    return _step(name, Outcome.NOT_APPLICABLE, why, figures or {})


def with_stream(ask: Ask) -> Ask:
    """The same ask, streamed."""
    return replace(ask, stream=True, subject=f"{ask.subject}, streamed")
