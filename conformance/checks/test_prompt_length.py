"""Prompt lengths: off-by-one errors live at block borders and at the step's token budget.

Real ones: k·B+1 never hits (vllm#40684); only the first chunk of a chunked prefill is saved
(vllm#53314); prompts under a block leak P's blocks (vllm#18591); N against N-1 (LMCache#4614).
"""

from dataclasses import dataclass

from conformance.case import Case
from conformance.errors import NotHere
from conformance.pair import Ask, completion
from conformance.registry import check


@dataclass(frozen=True)
class Length:
    """A length in blocks, token budgets of one scheduler step, and single tokens."""

    blocks: int = 0
    tokens: int = 0
    budgets: int = 0

    def of(self, block: int, budget: int) -> int:
        """In tokens, for a block size and a token budget."""
        return self.blocks * block + self.budgets * budget + self.tokens


# B: tokens per block on decode; T: tokens that one scheduler step may compute.
LENGTHS = {
    "1": Length(tokens=1),
    "2": Length(tokens=2),
    "B-1": Length(blocks=1, tokens=-1),
    "B": Length(blocks=1),
    "B+1": Length(blocks=1, tokens=1),
    "2B-1": Length(blocks=2, tokens=-1),
    "2B": Length(blocks=2),
    "2B+1": Length(blocks=2, tokens=1),
    "3B": Length(blocks=3),
    "T+B+7": Length(budgets=1, blocks=1, tokens=7),
}


@check("length", feature="prompt-length", cases=tuple(LENGTHS))
def test_every_prompt_length_transfers(case: Case) -> None:
    """A prompt of this many tokens transfers as far as its length allows, with parity.

    Lengths are exact, in tokens, around the block size B that the server reports and above the
    token budget T of one scheduler step (chunked prefill).
    """
    length = LENGTHS[case.name].of(case.block, _budget(case))
    case.saw("prompt length in tokens", length)
    case.prove(
        Ask(
            f"completion of {length} tokens",
            "completions",
            lambda variant: completion(case.ids(length, variant), max_tokens=8),
        )
    )


def _budget(case: Case) -> int:
    """Tokens of one scheduler step; 0 for a length that does not depend on it."""
    if not LENGTHS[case.name].budgets:
        return 0
    if case.pair.token_budget is None:
        raise NotHere(
            "prefill does not tell its token budget (--max-num-batched-tokens): this pair was "
            "running already, and has no /server_info (VLLM_SERVER_DEV_MODE=1)"
        )
    return case.pair.token_budget
