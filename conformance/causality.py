"""Causality: decode's answer depends on the KV that was transferred, and on nothing else.

Counters count what a connector claims (DecodeBenchConnector claims perfect transfers of KV that
it made up), so decode is given KV that is not this prompt's, and its answer has to change.
"""

from __future__ import annotations

from conformance.answer import Answer
from conformance.client import Body
from conformance.endpoints import with_ids
from conformance.evidence import Outcome, Rung, Step
from conformance.handoffs import NOTHING, Handed
from conformance.metrics import Meter, TokenSources
from conformance.pair import Ask, Pair, completion
from conformance.parity import compare

VARIANT = 2
# By chance two prompts have one answer, or answers within the tolerance: seen twice in 220 cells
# under a schema, at 0.15 nat (vLLM 0.32.0). A decode that does not use what it is given never has
# another.
CHANCES = 3
# Variants of an ask that nothing else uses; the first is the one that a check may prepare.
VARIANTS = (VARIANT, *range(2001, 2000 + CHANCES))
OUT_OF_REACH = "the store of a pair that was running already is not the suite's to touch"
NO_DONOR = (
    "the connector joins the legs by their endpoint's request id, and this endpoint cannot be "
    "asked for the KV of given token ids"
)
Figures = dict[str, object]


def causality(pair: Pair, ask: Ask, promised: int) -> Step:
    """Step 3, by the method that the profile names, on prompts not used before."""
    if promised == 0:
        return _step(Outcome.NOT_APPLICABLE, "no KV is promised at this length", {})
    if pair.expected(ask.endpoint, ask.body(VARIANT)).prompt_tokens < 2:
        return _step(Outcome.NOT_APPLICABLE, "decode computes the only token itself", {})
    obstacle = _obstacle(pair)
    if obstacle is not None:
        return _step(Outcome.NOT_APPLICABLE, obstacle, {"excuse": True})
    for tried, variant in enumerate(VARIANTS, 1):
        step = _other_kv(pair, ask, ask.body(variant))
        step.figures["prompts_tried"] = tried
        if step.outcome is not Outcome.RECOMPUTED:
            break
    return step


def _other_kv(pair: Pair, ask: Ask, body: Body) -> Step:
    clean = pair.expected(ask.endpoint, body)
    if pair.damage is not None:
        return _damaged(pair, ask, body, clean)
    return _swapped(pair, ask, body, clean)


def _obstacle(pair: Pair) -> str | None:
    """Why decode cannot be made to see other KV here; ``None`` where it can."""
    way = pair.profile.causality
    if way.method == "none":
        return way.why or ""
    if way.method == "swap_params":
        return pair.no_swap
    return None if pair.damage else f"it takes damage to what is stored, and {OUT_OF_REACH}"


def _damaged(pair: Pair, ask: Ask, body: Body, clean: Answer) -> Step:
    """The stored KV of this prompt is permuted between the legs."""
    assert pair.damage is not None
    pair.damage.mark()
    pair.prefill_leg(ask.endpoint, body)
    damaged = pair.damage.apply()
    handed = NOTHING.with_ids(clean.prompt_token_ids) if ask.reuse_ids else NOTHING
    meter = Meter.on(pair.decode)
    answer, _ = pair.decode_leg(ask.endpoint, body, handed)
    external = TokenSources.of(meter.delta()).external
    figures: Figures = {"damaged_pieces": damaged, "external_kv_transfer": external}
    return _changed(pair, clean, answer, figures, "damage to the stored KV")


def _swapped(pair: Pair, ask: Ask, body: Body, clean: Answer) -> Step:
    """Decode gets the handoff of a prompt of equal length that ends in the same token.

    Decode computes the last token itself, so if it holds the donor's KV of all the others it
    must go on exactly as the donor does.
    """
    ids = list(clean.prompt_token_ids) or pair.decode.rendered(body["messages"])
    donor = pair.prompts.sibling(ids, ask.subject, "donor")
    handed = _donated(pair, ask, body, donor)
    if handed is None:
        return _step(Outcome.NOT_APPLICABLE, NO_DONOR, {"excuse": True})
    if ask.reuse_ids:
        handed = handed.with_ids(clean.prompt_token_ids)
    answer, _ = pair.decode_leg(ask.endpoint, body, handed)
    figures: Figures = {"donor_tokens": len(donor)}
    donated = with_ids(ask.endpoint, body, donor)
    if donated:
        expected = pair.expected(ask.endpoint, donated)
        figures["follows_donor"] = compare(expected, answer, pair.model.dtype).equal
    return _changed(pair, clean, answer, figures, "another prompt's KV")


def _donated(pair: Pair, ask: Ask, body: Body, donor: list[int]) -> Handed | None:
    """What decode would be given for the donor's prompt; ``None`` where P cannot be asked for it.

    Legs that are joined by vLLM's request id have to go to the same endpoint.
    """
    if not pair.handoff(pair.place).same_request_id:
        return pair.prefill_leg("completions", completion(donor, max_tokens=1))[1]
    donated = with_ids(ask.endpoint, body, donor)
    if donated:
        return pair.prefill_leg(ask.endpoint, donated)[1]
    if ask.endpoint == "responses":  # passes no ids on (vLLM 0.32.0, openai/responses/serving.py)
        return None
    return pair.prefill_leg(ask.endpoint, body, ids=donor)[1]


def _changed(pair: Pair, clean: Answer, answer: Answer, figures: Figures, cause: str) -> Step:
    found = compare(clean, answer, pair.model.dtype)
    figures |= found.figures()
    if found.equal:
        summary = f"the answer is unchanged by {cause}: decode does not use what it is given"
        return _step(Outcome.RECOMPUTED, summary, figures)
    follows = ", into the donor's own answer" if figures.get("follows_donor") else ""
    return _step(Outcome.HELD, f"{cause} changes the answer{follows}", figures)


def _step(outcome: Outcome, summary: str, figures: Figures) -> Step:
    return Step(name=Rung.CAUSALITY, outcome=outcome, summary=summary, figures=figures)
