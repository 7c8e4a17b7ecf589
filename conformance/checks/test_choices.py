"""Several answers to one prompt: each choice of n, best_of, beam search.

The engine makes several requests of such a one. Each has to get the prompt's KV: with n, children
were known to be stranded, or to have P's blocks freed under them (vllm#43509, vllm#38900).
"""

from collections.abc import Sequence
from dataclasses import replace

from conformance import expect
from conformance.answer import Answer, all_answers
from conformance.case import Case
from conformance.causality import causality
from conformance.client import Body
from conformance.detours import may_be_refused
from conformance.errors import HandoffBroken, Refused
from conformance.evidence import Outcome, Proof, Rung, Step
from conformance.ladder import PROVEN, bytes_stored, control, movement, parity
from conformance.metrics import Meter, TokenSources
from conformance.pair import Ask, Exchange, Legs, completion
from conformance.parity import compare
from conformance.registry import check

CHOICES = 3


@check("sampling/n", feature="sampling", level="extended", cases=("unstreamed", "streamed"))
def test_every_choice_is_the_references(case: Case) -> None:
    """Each of n choices is the one that the reference samples, from KV that was transferred."""

    def body(variant: int) -> Body:
        ids = case.ids(2 * case.block + 5, variant)
        return completion(ids, temperature=1.0, seed=7, n=CHOICES)

    ask = Ask(f"{CHOICES} sampled choices", "completions", body)
    ask = ask.streamed() if case.name == "streamed" else ask
    with may_be_refused(case, "n"):
        _prove_choices(case, ask)


@check("sampling/best-of", feature="sampling", level="extended")
def test_best_of_is_ignored_or_refused(case: Case) -> None:
    """With best_of, which vLLM has no longer, the answer is as without it, or a 4xx names it."""
    ask = Ask(
        "completion with best_of",
        "completions",
        lambda variant: completion(case.ids(2 * case.block + 5, variant), best_of=2),
    )
    with may_be_refused(case, "best_of"):
        climbed = case.prove(ask)
        expect.equal(len(climbed.answer.raw["choices"]), 1, "choices")


@check("sampling/beam-search", feature="sampling", level="extended")
def test_beams_are_the_references(case: Case) -> None:
    """Beam search through the pair finds the reference's beams.

    vLLM 0.32.0 makes requests of its own for it, without ``kv_transfer_params``
    (``to_beam_search_params``), so what needs them is recomputed. That is no fault of a connector,
    and no transfer either: the cell says unsupported once the beams are found right.
    """
    ask = Ask(
        "beam search for two beams",
        "completions",
        lambda variant: completion(
            case.ids(2 * case.block + 5, variant), 4, use_beam_search=True, n=2
        ),
    )
    with may_be_refused(case, "use_beam_search"):
        _prove_beams(case, ask)


def _prove_choices(case: Case, ask: Ask) -> None:
    expected = _expected(case, ask)
    texts = {answer.token_ids for answer in expected}
    expect.equal(len(texts), CHOICES, "different choices of the reference")
    stored = bytes_stored(case.pair)
    exchange = case.pair.exchange(ask, ask.body(PROVEN))
    sources = TokenSources.of(exchange.decode_delta)
    total = CHOICES * expected[0].prompt_tokens
    promised = case.pair.profile.granularity.promised(expected[0].prompt_tokens, case.block)
    # The others may find in decode's own cache what the first has loaded.
    covered = sources.external + sources.local_cache_hit
    outcome = Outcome.HELD
    if sources.external < promised or covered < CHOICES * promised:
        outcome = Outcome.RECOMPUTED
    if sources.total != total:
        outcome = Outcome.BROKEN
    _prove(case, ask, exchange, stored, expected, _accounted(sources, outcome, promised))


def _prove_beams(case: Case, ask: Ask) -> None:
    expected = _expected(case, ask)
    stored = bytes_stored(case.pair)
    exchange = _exchange(case, ask)
    sources = TokenSources.of(exchange.decode_delta)
    promised = case.pair.profile.granularity.promised(expected[0].prompt_tokens, case.block)
    seen = _answers(exchange.legs[0])
    if sources.external >= promised or case.cell.profile.handoff == "none":
        held = Outcome.HELD if sources.external >= promised else Outcome.RECOMPUTED
        _prove(case, ask, exchange, stored, expected, _accounted(sources, held, promised))
        return
    case.saw("where the prompt tokens of all beams came from", vars(sources))
    _must_equal(case, expected, seen)
    raise Refused(
        "beam search takes no kv_transfer_params to the engine (vLLM 0.32.0, to_beam_search_params "
        f"in openai/completion/protocol.py): decode computed {sources.local_compute} prompt tokens "
        "itself, and found the right beams"
    )


def _exchange(case: Case, ask: Ask) -> Exchange:
    """Both legs, or decode's alone where P returns nothing to hand over, as a router would."""
    body = ask.body(PROVEN)
    try:
        return case.pair.exchange(ask, body)
    except HandoffBroken as problem:
        case.saw("prefill's answer to beam search", str(problem))
    on_prefill, on_decode = Meter.on(case.pair.prefill), Meter.on(case.pair.decode)
    answer, _ = case.pair.decode_leg(ask.endpoint, body)
    return Exchange([Legs(answer, answer)], on_prefill.delta(), on_decode.delta())


def _prove(
    case: Case, ask: Ask, exchange: Exchange, stored: int, expected: list[Answer], first: Step
) -> None:
    pair, single = case.pair, replace(ask, body=lambda variant: {**ask.body(variant), "n": 1})
    promised = pair.profile.granularity.promised(expected[0].prompt_tokens, case.block)
    seen = _answers(exchange.legs[0])
    proof = Proof(subject=ask.subject)
    case.evidence.proofs.append(proof)
    proof.steps += [
        first,
        movement(pair, exchange, bytes_stored(pair) - stored, promised),
        causality(pair, single, promised),
        *(parity(w, s, pair.model.dtype) for w, s in zip(expected, seen, strict=False)),
        control(pair, single),
    ]
    _must_equal(case, expected, seen)


def _must_equal(case: Case, expected: Sequence[Answer], seen: Sequence[Answer]) -> None:
    expect.equal(len(seen), len(expected), "choices")
    dtype = case.pair.model.dtype
    found = [compare(w, s, dtype) for w, s in zip(expected, seen, strict=True)]
    case.saw("each choice against the reference's", [each.describe() for each in found])
    wrong = [number for number, each in enumerate(found) if not each.equal]
    expect.equal(wrong, [], "choices that are not the reference's")


def _accounted(sources: TokenSources, outcome: Outcome, promised: int) -> Step:
    summary = (
        f"external={sources.external}, at least {promised} for each that does not find them in "
        f"decode's own cache; local_cache_hit={sources.local_cache_hit} of {sources.total}"
    )
    return Step(name=Rung.ACCOUNTING, outcome=outcome, summary=summary, figures=vars(sources))


def _expected(case: Case, ask: Ask) -> list[Answer]:
    return all_answers(case.pair.expected(ask.endpoint, ask.body(PROVEN)).raw)


def _answers(legs: Legs) -> list[Answer]:
    return legs.transcript.answers() if legs.transcript else all_answers(legs.decode.raw)
