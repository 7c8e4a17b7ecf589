"""Concurrent requests with a shared prefix: keys and block ids must not be mixed up.

Requests whose prompts begin with the same whole blocks have the same keys in a store and the
same blocks in prefix caches; what differs is the rest, and nobody may get another's.
"""

from conformance import expect
from conformance.answer import Answer
from conformance.case import Case
from conformance.ladder import PROVEN
from conformance.pair import Ask, completion
from conformance.parity import compare
from conformance.proof_of_many import climb_many
from conformance.registry import check

ROUNDS = 2
# Variants of a request that go at once.
BODIES = (10, 11)


@check("shared-prefix/cold", feature="shared-prefix", cases=("1 block", "2 blocks", "3 blocks"))
def test_two_at_once_get_their_own_answers(case: Case) -> None:
    """Two requests at once that share exactly k blocks each get the answer to their own prompt."""
    shared = int(case.name.split()[0]) * case.block
    for number in range(ROUNDS):
        _prove_own_answers(case, shared, (case.block // 2, case.block // 2), number)


@check("shared-prefix/uneven", feature="shared-prefix", cases=("1 block", "2 blocks"))
def test_uneven_lengths_get_their_own_answers(case: Case) -> None:
    """As above when each prompt ends a token past a block, and P knows all blocks but its last.

    P's prompts before are decoded elsewhere, as with several decode instances, so that D's own
    prefix cache does not hide what the connector does (vllm#53495, vllm#40684). Whichever of the
    two comes first to D, its blocks are not there yet.
    """
    shared = int(case.name.split()[0]) * case.block
    rests = (case.block + 1, 2 * case.block + 1)
    ask = _ask(case, shared, rests, "before")
    for variant in BODIES:
        known = ask.body(variant)["prompt"][: -rests[0]]
        other = case.ids(case.block // 2, "known", variant)
        case.pair.prefill_leg(ask.endpoint, completion([*known, *other], max_tokens=1))
    _prove_own_answers(case, shared, rests, "before")


@check("shared-prefix/one-past", feature="shared-prefix")
def test_one_token_past_a_block_with_a_known_prefix(case: Case) -> None:
    """A prompt one token past a block transfers when P knows its first blocks from another.

    A store that looks a prompt up by fewer blocks than it loads finds the other's entry and then
    opens one that is not there (ExampleConnector, vLLM 0.32.0, vllm#40684).
    """
    shared = case.block

    def body(variant: int, rest: int = case.block + 1) -> dict[str, object]:
        prefix = case.ids(shared, "prefix", variant)
        return completion([*prefix, *case.ids(rest, "rest", variant, rest)], max_tokens=12)

    case.pair.prefill_leg("completions", body(PROVEN, case.block // 2))
    case.prove(Ask(f"prompt one token past a block, {shared} known", "completions", body))


@check("shared-prefix/parted", feature="shared-prefix")
def test_a_prompt_that_parts_from_a_known_one_at_a_block(case: Case) -> None:
    """A prompt that begins with the block of another and goes on with its own gets its own KV.

    P knows the other one, whose second block is a whole one too: a store that looks a prompt up by
    less than all of it takes that for this one's.
    """

    def body(variant: int, whose: str = "own") -> dict[str, object]:
        prefix = case.ids(case.block, "prefix", variant)
        rest = case.ids(case.block + case.block // 2, whose, variant)
        return completion([*prefix, *rest], max_tokens=12)

    case.pair.prefill_leg("completions", body(PROVEN, "another's"))
    case.prove(Ask(f"prompt that shares {case.block} tokens with a known one", "completions", body))


def _ask(case: Case, shared: int, rests: tuple[int, int], arm: object) -> Ask:
    prefix = case.ids(shared, "prefix", arm)

    def body(variant: int) -> dict[str, object]:
        rest = case.ids(rests[variant % 2], "rest", arm, variant)
        return completion([*prefix, *rest], max_tokens=12)

    return Ask(f"two prompts that share {shared} tokens, round {arm}", "completions", body)


def _prove_own_answers(case: Case, shared: int, rests: tuple[int, int], arm: object) -> None:
    """Two bodies go at once; the ladder's own arms use other variants."""
    pair = case.pair
    ask = _ask(case, shared, rests, arm)
    bodies = [ask.body(variant) for variant in BODIES]
    expected = [pair.expected("completions", body) for body in bodies]
    expect.true(
        not compare(expected[0], expected[1], pair.model.dtype).equal,
        "the reference should answer both prompts differently",
        "one answer",
    )
    fresh = _ask(case, shared, rests, (arm, "fresh prefix"))
    unhanded = _ask(case, shared, rests, (arm, "control"))
    exchange = climb_many(
        case,
        ask,
        expected,
        lambda: pair.exchange(ask, *bodies),
        cold=False,
        arms=(fresh, unhanded),
    )
    _nobody_got_the_others(case, expected, [legs.decode for legs in exchange.legs])


def _nobody_got_the_others(case: Case, expected: list[Answer], seen: list[Answer]) -> None:
    crossed = [
        compare(expected[1 - number], answer, case.pair.model.dtype).equal
        for number, answer in enumerate(seen)
    ]
    case.saw("got the other's answer", crossed)
    expect.true(not any(crossed), "nobody should get the other request's answer", crossed)
