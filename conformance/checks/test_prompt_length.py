"""Prompt lengths: off-by-one errors live at block borders and at the step's token budget.

Real ones: k·B+1 never hits (vllm#40684); only the first chunk of a chunked prefill is saved
(vllm#53314); prompts under a block leak P's blocks (vllm#18591); N against N-1 (LMCache#4614).
"""

from collections.abc import Callable

from conformance.case import Case
from conformance.pair import Ask, completion
from conformance.registry import check

# B: tokens per block on decode; T: tokens that one scheduler step may compute.
LENGTHS: dict[str, Callable[[int, int], int]] = {
    "1": lambda block, budget: 1,
    "2": lambda block, budget: 2,
    "B-1": lambda block, budget: block - 1,
    "B": lambda block, budget: block,
    "B+1": lambda block, budget: block + 1,
    "2B-1": lambda block, budget: 2 * block - 1,
    "2B": lambda block, budget: 2 * block,
    "2B+1": lambda block, budget: 2 * block + 1,
    "3B": lambda block, budget: 3 * block,
    "T+B+7": lambda block, budget: budget + block + 7,
}


@check("length", feature="prompt-length", cases=tuple(LENGTHS))
def test_every_prompt_length_transfers(case: Case) -> None:
    """A prompt of this many tokens transfers as far as its length allows, with parity.

    Lengths are exact, in tokens, around the block size B that the server reports and above the
    token budget T of one scheduler step (chunked prefill).
    """
    length = LENGTHS[case.name](case.block, case.pair.token_budget)
    case.saw("prompt length in tokens", length)
    case.prove(
        Ask(
            f"completion of {length} tokens",
            "completions",
            lambda variant: completion(case.ids(length, variant), max_tokens=8),
        )
    )
