"""Scheduler interplay: transfers meet prefix caches, chunks and each other.

A connector is asked in the middle of scheduling how much of a prompt it brings, beyond what is
there already; most defects are in that sum. Real ones: a block table longer than what is missing
(vllm#48471), the second identical request transferred again (vllm#25267), only the first chunk
saved (vllm#53314), a last chunk that needs no new block (vllm#43294), garbled answers under
load (vllm#20263).
"""

from collections.abc import Callable

from conformance import expect
from conformance.case import Case
from conformance.client import Body
from conformance.crowd import must_differ, nobody_got_anothers
from conformance.errors import NotHere
from conformance.evidence import Proof
from conformance.metrics import TokenSources
from conformance.pair import Ask, completion
from conformance.profile import Profile
from conformance.proof_of_many import prove_at_once
from conformance.registry import check
from conformance.warm import Warmth, climb_warm, must_cache_prefixes

# Blocks of the prompt that are known before, and all whole blocks below the last token.
KNOWN = {"one block": 1, "all blocks": 3}
TIMES = 4
CROWD = 8
AHEAD = 4


def _hands_over(profile: Profile) -> bool:
    """Whether decode gets KV by a handoff alone: a store has what P knows, for whoever asks."""
    return profile.handoff != "none"


@check(
    "scheduler/prefix/decode", feature="scheduler", cases=tuple(KNOWN), core_cases=("one block",)
)
def test_only_what_decode_lacks_comes_from_outside(case: Case) -> None:
    """Of a prompt whose first blocks decode has in its own cache, only the rest is transferred.

    Asked without a handoff before, decode has computed the prefix itself; then its counters have
    to say cache hit for it, transfer for the rest, and add up to the prompt.
    """
    known = KNOWN[case.name] * case.block
    ask = _completion(case, f"completion of which decode knows {known} tokens", _past_three(case))
    _prove_warm(case, ask, known)


@check("scheduler/prefix/transferred", feature="scheduler")
def test_what_a_transfer_left_behind_serves_other_prompts(case: Case) -> None:
    """A block that came with another prompt's transfer is right for whoever begins alike.

    Decode keeps transferred blocks in its own prefix cache. One that was put in the wrong place
    does the prompt that brought it no harm, since attention does not care for the order of blocks;
    the next prompt that begins with it is answered from another block.
    """
    known = case.block
    ask = _completion(case, f"completion of which decode was brought {known}", _past_three(case))
    must_cache_prefixes(case.pair.decode)

    def bring(body: Body) -> None:
        begun = body["prompt"][:known]
        rest = case.ids(2 * case.block + 3, "another's", begun)
        case.pair.both_legs(ask, completion([*begun, *rest], max_tokens=1))

    _climb_warm(case, ask, Warmth(known, bring))


@check(
    "scheduler/prefix/prefill",
    feature="scheduler",
    cases=tuple(KNOWN),
    core_cases=("all blocks",),
    applies=_hands_over,
)
def test_what_prefill_had_cached_is_transferred_too(case: Case) -> None:
    """A prompt whose first blocks prefill has in its own cache is transferred as a whole."""
    must_cache_prefixes(case.pair.prefill)
    known = KNOWN[case.name] * case.block
    ask = _completion(case, f"completion of which prefill knows {known} tokens", _past_three(case))
    for variant in range(4):
        _known_to_prefill(case, ask.body(variant), known)
    case.prove(ask)
    expected = case.pair.expected(ask.endpoint, ask.body(3))
    exchange = case.pair.exchange(ask, ask.body(3))
    hits = TokenSources.of(exchange.prefill_delta).local_cache_hit
    case.saw("tokens that prefill found in its own cache", hits)
    expect.equal(hits, known, "local_cache_hit of prefill")
    expect.equal(exchange.legs[0].decode.token_ids, expected.token_ids, "token ids")


@check(
    "scheduler/prefix/both",
    feature="scheduler",
    level="extended",
    cases=("prefill knows more", "decode does"),
    applies=_hands_over,
)
def test_sides_may_know_different_prefixes(case: Case) -> None:
    """Where both sides know some of a prompt, decode still gets what it lacks, and no more."""
    must_cache_prefixes(case.pair.prefill)
    more, less = 2 * case.block, case.block
    on_prefill, on_decode = (more, less) if case.name == "prefill knows more" else (less, more)
    ask = _completion(case, f"prefill knows {on_prefill}, decode {on_decode}", _past_three(case))
    for variant in range(3):
        _known_to_prefill(case, ask.body(variant), on_prefill)
    _prove_warm(case, ask, on_decode)


@check(
    "scheduler/repeated",
    feature="scheduler",
    cases=("one by one", "at once"),
    core_cases=("at once",),
)
def test_the_same_request_again_and_again(case: Case) -> None:
    """The same request, sent several times, gets the same answer each time and loses no token.

    One by one, every time after the first decode finds the whole blocks in its own cache.
    """
    ask = _completion(case, f"the same request {TIMES} times", 2 * case.block + 5)
    bodies = [ask.body(10)] * TIMES
    if case.name == "at once":
        prove_at_once(case, ask, bodies, cold=False)
        return
    must_cache_prefixes(case.pair.decode)
    climbed = case.prove(ask)
    whole = 2 * case.block
    for number in range(1, TIMES):
        exchange = case.pair.exchange(ask, ask.body(0))
        sources = TokenSources.of(exchange.decode_delta)
        case.saw(f"sources of the prompt at repetition {number}", vars(sources))
        expect.equal(sources.total, climbed.expected.prompt_tokens, "sum of the sources")
        expect.equal(sources.local_cache_hit, whole, "local_cache_hit of decode")
        answer = exchange.legs[0].decode
        expect.equal(answer.token_ids, climbed.expected.token_ids, "token ids")


# By what of the prompt is left for the last chunk; T: tokens that one scheduler step may compute.
LAST_CHUNKS: dict[str, Callable[[int, int], int]] = {
    "T+2": lambda budget, block: budget + 2,  # noqa: ARG005
    "T+B-1": lambda budget, block: budget + block - 1,
    "2T+B+3": lambda budget, block: 2 * budget + block + 3,
}


@check("scheduler/chunks", feature="scheduler", cases=tuple(LAST_CHUNKS), core_cases=("T+B-1",))
def test_a_prompt_prefilled_in_chunks_transfers_whole(case: Case) -> None:
    """A prompt that prefill computes in several steps, the last inside a block, transfers whole."""
    length = LAST_CHUNKS[case.name](budget_of(case), case.block)
    case.saw("prompt length in tokens", length)
    case.prove(_completion(case, f"completion of {length} tokens in chunks", length))


@check("scheduler/chunks/busy", feature="scheduler", level="extended", cases=("prefill", "decode"))
def test_chunks_shared_with_another_prompt(case: Case) -> None:
    """A request whose side computes a long prompt at the same time gets its own answer from KV.

    Steps are then shared, so that chunks end inside blocks (vllm#43294) and loads finish between
    the chunks of another.
    """
    budget = budget_of(case)
    long = completion(case.ids(3 * budget - case.block // 3, "long"), max_tokens=4)
    ask = _completion(case, f"completion while {case.name} is busy", 2 * case.block + 7)
    mine = [ask.body(variant) for variant in (10, 11)]
    if case.name == "prefill":
        prove_at_once(case, ask, [long, *mine])
    else:
        prove_at_once(case, ask, mine, alone=[long])


@check("scheduler/crowd", feature="scheduler")
def test_everybody_in_a_crowd_gets_his_own_answer(case: Case) -> None:
    """Of many different requests at once, each gets the answer to its own prompt, from its KV.

    Short ones and some of two blocks and a rest, together more than a step of prefill computes.
    They come while it computes others, so that steps take several and cut some in two, whoever
    comes first.
    """
    ask = _completion(case, f"{CROWD} completions at once", 2 * case.block + 5)
    lengths = [2 * case.block * (number % 2) + 7 * number + 9 for number in range(CROWD)]
    bodies = [
        completion(case.ids(length, "crowd", number), max_tokens=10)
        for number, length in enumerate(lengths)
    ]
    must_differ(case, bodies)
    exchange = prove_at_once(case, ask, bodies, ahead=_keeping_prefill_busy(case, sum(lengths)))
    nobody_got_anothers(case, bodies, exchange)


def _keeping_prefill_busy(case: Case, tokens: int) -> list[Body]:
    """Prompts of some steps, where requests of so many ``tokens`` do not fit into one anyway."""
    budget = case.pair.token_budget
    if budget is None or tokens <= budget:
        return []
    length = 2 * budget - case.block
    return [completion(case.ids(length, "ahead", n), max_tokens=1) for n in range(AHEAD)]


def budget_of(case: Case) -> int:
    """Tokens that one scheduler step of prefill may compute, as it says or was told."""
    if case.pair.token_budget is None:
        raise NotHere(
            "prefill does not tell its token budget: this pair was running already, and has no "
            "/server_info (VLLM_SERVER_DEV_MODE=1)"
        )
    return case.pair.token_budget


def _past_three(case: Case) -> int:
    return 3 * case.block + case.block // 2


def _completion(case: Case, subject: str, length: int) -> Ask:
    def body(variant: int) -> Body:
        return completion(case.ids(length, variant), max_tokens=10)

    return Ask(subject, "completions", body)


def _known_to_prefill(case: Case, body: Body, tokens: int) -> None:
    """By a request without a handoff, so that nothing waits for a decode instance."""
    case.pair.prefill.ask("completions", completion(body["prompt"][:tokens], max_tokens=1))


def _prove_warm(case: Case, ask: Ask, known: int) -> None:
    must_cache_prefixes(case.pair.decode)

    def prepare(body: Body) -> None:
        case.pair.decode.ask("completions", completion(body["prompt"][:known], max_tokens=1))

    _climb_warm(case, ask, Warmth(known, prepare))


def _climb_warm(case: Case, ask: Ask, warmth: Warmth) -> None:
    proof = Proof(subject=ask.subject)
    case.evidence.proofs.append(proof)
    climb_warm(case.pair, ask, warmth, proof)
