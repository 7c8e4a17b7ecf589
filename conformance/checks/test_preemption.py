"""Scheduler interplay on servers started for it: preemption, asynchronous steps, priorities.

A preempted request gives its blocks back and is scheduled anew, by when its transfer is over:
state kept for the first time must not be used again, or be missed (vllm#18631, vllm#46014,
LMCache#1969). Asynchronous scheduling runs a step ahead of what it knows (vllm#42182).
"""

from conformance.case import Case
from conformance.client import Client
from conformance.crowd import must_differ, nobody_got_anothers
from conformance.developer import configured
from conformance.errors import NotHere, SuiteError
from conformance.pair import Ask, completion
from conformance.proof_of_many import prove_at_once
from conformance.registry import check
from conformance.serving.deployment import Shape

PREEMPTIONS = "vllm:num_preemptions_total"
CROWD = 4
# Rounds of fresh requests in which a preemption has to come about, else nothing is proven.
ROUNDS = 3

# Both sides have blocks of one size, whatever the platform's own; of one side the pool is just
# what one request of the greatest length needs, and the block that vLLM keeps (0.32.0,
# ``kv_cache_utils.py``): two requests of 3 blocks that grow to 4 do not fit into 7.
BLOCKS = ("--block-size", "128")
SMALL_POOL = (*BLOCKS, "--max-model-len", "896", "--num-gpu-blocks-override", "8")
# Prefill holds a request only while it computes the prompt, so that has to take many steps, and
# several have to be begun although they do not fit.
IN_SMALL_STEPS = (
    *("--max-num-batched-tokens", "192", "--max-num-seqs", "8"),
    *("--long-prefill-token-threshold", "32", "--no-scheduler-reserve-full-isl"),
)
BUDGET_OF_SMALL_STEPS = 192
BY_PRIORITY = ("--scheduling-policy", "priority", "--no-async-scheduling")

SMALL_ON_D = Shape("small-D", prefill_args=BLOCKS, decode_args=SMALL_POOL)
SMALL_ON_P = Shape("small-P", prefill_args=(*SMALL_POOL, *IN_SMALL_STEPS), decode_args=BLOCKS)
# Priorities without asynchronous scheduling, which is what a GPU has otherwise.
PRIORITY = Shape(
    "priority-sync",
    prefill_args=(*BLOCKS, *BY_PRIORITY),
    decode_args=(*SMALL_POOL, *BY_PRIORITY),
)


@check("scheduler/preemption/decode", feature="scheduler", level="extended", shape=SMALL_ON_D)
def test_requests_preempted_on_decode_are_answered_right(case: Case) -> None:
    """Requests that decode preempts for lack of blocks, KV loaded and all, are answered right.

    Prefill's pool is many times as large, so that its block numbers exceed decode's (vllm#19338).
    """
    _prove_preempted(case, case.pair.decode, _growing(case), priorities=False)


@check("scheduler/preemption/prefill", feature="scheduler", level="extended", shape=SMALL_ON_P)
def test_requests_preempted_on_prefill_transfer_whole(case: Case) -> None:
    """A prompt whose prefill is preempted half way is computed again, and transfers whole.

    Prompts whose KV waits for decode hold blocks as well, and cannot be preempted.
    """
    length = 5 * case.block - case.block // 3
    ask = Ask(
        f"{CROWD} prompts of {length} tokens on a prefill pool for one",
        "completions",
        lambda variant: completion(case.ids(length, variant), max_tokens=8),
    )
    _prove_preempted(case, case.pair.prefill, ask, priorities=False)


@check("scheduler/chunks/no-new-block", feature="scheduler", level="extended", shape=SMALL_ON_P)
def test_a_chunk_may_need_no_new_block(case: Case) -> None:
    """A prompt whose last chunk fits into the block that the chunk before began transfers whole.

    The scheduler then names no new block for it (vllm#33092, vllm#43294).
    """
    length = BUDGET_OF_SMALL_STEPS + case.block // 4
    case.saw(
        "prompt length, tokens of a step, tokens per block",
        (length, BUDGET_OF_SMALL_STEPS, case.block),
    )
    case.prove(
        Ask(
            f"completion of {length} tokens in chunks of {BUDGET_OF_SMALL_STEPS}",
            "completions",
            lambda variant: completion(case.ids(length, variant), max_tokens=8),
        )
    )


@check("scheduler/priority", feature="scheduler", level="extended", shape=PRIORITY)
def test_requests_of_different_priorities(case: Case) -> None:
    """With priorities on both sides, requests that make room for others are answered right."""
    _prove_preempted(case, case.pair.decode, _growing(case), priorities=True)


@check("scheduler/async/on", feature="scheduler", level="extended")
def test_asynchronous_scheduling(case: Case) -> None:
    """With asynchronous scheduling on both sides, requests at once transfer, with parity.

    It is vLLM's default where the platform has it (0.32.0).
    """
    _must_be_scheduled(case, asynchronously=True)
    _prove_crowd(case)


@check("scheduler/async/off", feature="scheduler", level="extended", shape=PRIORITY)
def test_synchronous_scheduling(case: Case) -> None:
    """Without asynchronous scheduling on either side, requests at once transfer, with parity."""
    _must_be_scheduled(case, asynchronously=False)
    _prove_crowd(case)


def _growing(case: Case) -> Ask:
    """Answers begin a few tokens below a block's end, and cross it."""
    length = 3 * case.block - 4
    return Ask(
        f"{CROWD} answers that grow into a fourth block each, on a decode pool for one request",
        "completions",
        lambda variant: completion(case.ids(length, variant), max_tokens=40),
    )


def _prove_preempted(case: Case, side: Client, ask: Ask, *, priorities: bool) -> None:
    case.saw("blocks of prefill's pool and of decode's", _pools(case))
    for number in range(ROUNDS):
        variants = [10 * (number + 1) + one for one in range(CROWD)]
        bodies = [ask.body(variant) for variant in variants]
        asked = [
            {**body, "priority": CROWD - place} if priorities else body
            for place, body in enumerate(bodies)
        ]
        before = _preemptions(side)
        exchange = prove_at_once(case, _fresh(ask, number), bodies, asked=asked)
        nobody_got_anothers(case, bodies, exchange)
        preempted = _preemptions(side) - before
        case.saw(f"preemptions on {side.server.role}, round {number}", preempted)
        if preempted:
            return
    raise SuiteError(
        f"nothing was preempted on {side.server.role} in {ROUNDS} rounds, so nothing is proven: "
        f"{PREEMPTIONS} did not move"
    )


def _fresh(ask: Ask, number: int) -> Ask:
    """Other variants in each round: what the proof's arms have sent is in prefix caches."""
    return Ask(ask.subject, ask.endpoint, lambda variant: ask.body(100 * (number + 1) + variant))


def _pools(case: Case) -> list[str | None]:
    return [
        client.counters().cache_config("num_gpu_blocks")
        for client in (case.pair.prefill, case.pair.decode)
    ]


def _preemptions(client: Client) -> int:
    return round(client.counters().total(PREEMPTIONS))


def _must_be_scheduled(case: Case, *, asynchronously: bool) -> None:
    """Raises :class:`NotHere` where the platform decides otherwise.

    A CPU turns it off without a word (0.32.0, ``platforms/cpu.py``).
    """
    for client in (case.pair.prefill, case.pair.decode):
        found = configured(client, "scheduler_config", "async_scheduling")
        role = client.server.role
        case.saw(f"async_scheduling of {role}, as /server_info says", found)
        if found is not None and found is not asynchronously:
            raise NotHere(f"{role} runs with async_scheduling={found} here, says /server_info")


def _prove_crowd(case: Case) -> None:
    length = 2 * case.block + 5
    ask = Ask(
        f"{CROWD} completions at once",
        "completions",
        lambda variant: completion(case.ids(length, variant), max_tokens=16),
    )
    bodies = [ask.body(10 + number) for number in range(CROWD)]
    must_differ(case, bodies)
    nobody_got_anothers(case, bodies, prove_at_once(case, ask, bodies))
