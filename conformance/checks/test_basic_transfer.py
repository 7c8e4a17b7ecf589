"""Basic transfer: the requirement that all others stand on.

A decode instance that recomputes every prompt gives the same text as one that uses the
transferred KV (vllm#26896, dynamo#13267), so the answer alone decides nothing here.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial

from conformance import expect
from conformance.case import Case
from conformance.held import lets_go
from conformance.pair import Ask, chat, completion
from conformance.registry import check

TIMES_AS_LONG = 10
# Below it a busy machine, or a connector's polling, makes more difference than the transfer.
MACHINE_S = 1.0


@check("transfer/completion", feature="basic-transfer")
def test_completion_is_continued_from_transferred_kv(case: Case) -> None:
    """A cold completions prompt prefilled on P is continued on D from the transferred KV."""
    length = 2 * case.block + case.block // 2
    case.prove(
        Ask(
            "completion of two and a half blocks",
            "completions",
            lambda variant: completion(case.ids(length, variant), max_tokens=16),
        )
    )


@check("transfer/chat", feature="basic-transfer")
def test_chat_is_continued_from_transferred_kv(case: Case) -> None:
    """A cold chat prompt prefilled on P is continued on D from the transferred KV."""
    case.prove(
        Ask(
            "chat of at least two blocks",
            "chat/completions",
            lambda variant: chat(case.text(2 * case.block, variant), max_tokens=16),
        )
    )


@check("transfer/nothing-held", feature="basic-transfer")
def test_nothing_stays_in_use_after_a_transfer(case: Case) -> None:
    """Once decode has answered, neither side holds a block for the request any longer.

    P keeps a prompt's blocks until they were fetched; whoever forgets to tell it, or does not hear,
    loses that much of the KV cache with every request (vllm#18591).
    """
    length = 2 * case.block + case.block // 2
    ask = Ask(
        "completion of two and a half blocks",
        "completions",
        lambda variant: completion(case.ids(length, variant), max_tokens=4),
    )
    case.prove(ask)
    with lets_go(case, case.pair.prefill, case.pair.decode):
        for variant in range(10, 13):
            case.pair.both_legs(ask, ask.body(variant))


@check("transfer/in-time", feature="basic-transfer", level="extended")
def test_a_transfer_takes_less_than_ten_times_what_the_prompt_does(case: Case) -> None:
    """A prompt goes through the pair before decode could have computed it ten times over.

    Medians over prompts of one length, for one token of answer. Speed is not what conformance is
    about, but a transfer that only ever loses time is none; under a second, what is measured is
    mostly the machine.
    """
    length = 3 * case.block + case.block // 2
    ask = Ask(
        "completion of three blocks and a half",
        "completions",
        lambda variant: completion(case.ids(length, variant), max_tokens=1),
    )
    case.prove(ask)
    through = statistics.median(
        _seconds(partial(case.pair.both_legs, ask, ask.body(v))) for v in range(10, 15)
    )
    alone = statistics.median(
        _seconds(partial(case.pair.decode_leg, ask.endpoint, ask.body(v))) for v in range(20, 25)
    )
    case.saw("seconds through the pair, and on decode alone", (through, alone))
    limit = max(TIMES_AS_LONG * alone, MACHINE_S)
    expect.true(through < limit, f"should take less than {limit:.2f} s", through)


def _seconds(request: Callable[[], object]) -> float:
    began = time.monotonic()
    request()
    return time.monotonic() - began


@check("real-model/transfer", feature="basic-transfer", model="real")
def test_real_model_is_continued_from_transferred_kv(case: Case) -> None:
    """A trained instruct model answers a chat through the pair as it does on one server."""
    question = "Summarize the text above in one sentence."
    case.prove(
        Ask(
            "chat with a trained model",
            "chat/completions",
            lambda variant: chat(f"{case.text(case.block, variant)}\n{question}", max_tokens=12),
        )
    )
