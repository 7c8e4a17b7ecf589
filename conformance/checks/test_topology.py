"""Topologies: more than one instance of a side, and sides that differ.

Ids, ports and block tables that are right for one pair may be another's when there are two
(vllm#42019); block sizes that differ make decode map one block onto several (nixl, vLLM 0.32.0);
with more ranks on prefill, each rank of decode reads the heads of several (vllm#43523).
"""

from collections.abc import Callable

from conformance.case import Case
from conformance.pair import Ask, completion
from conformance.profile import Profile
from conformance.registry import check
from conformance.serving.deployment import Shape

TWO_BY_TWO = Shape("2P2D", prefills=2, decodes=2)
SMALLER_ON_P = Shape("P64-D128", prefill_args=("--block-size", "64"))
SMALLER_ON_D = Shape("P128-D64", decode_args=("--block-size", "64"))
WIDER_PREFILL = Shape("TP2-TP1", prefill_args=("--tensor-parallel-size", "2"))


def _claimed(shape: Shape) -> Callable[[Profile], bool]:
    return lambda profile: shape.label in profile.topologies


@check(
    "topology/2P2D",
    feature="topology",
    level="extended",
    shape=TWO_BY_TWO,
    applies=_claimed(TWO_BY_TWO),
)
def test_every_prefill_instance_serves_every_decode_instance(case: Case) -> None:
    """With two instances of each side, each of the four pairs of them transfers."""
    length = 2 * case.block + 5
    for number, pair in enumerate(case.pairs, start=1):
        over = f"over pair {number} of {len(case.pairs)}"
        case.prove(_completion(case, over, length, number), pair)


@check(
    "topology/block-size/P64-D128",
    feature="topology",
    level="extended",
    shape=SMALLER_ON_P,
    applies=_claimed(SMALLER_ON_P),
)
def test_smaller_blocks_on_prefill(case: Case) -> None:
    """Prefill with blocks of 64 tokens and decode with blocks of 128 transfer, with parity."""
    _prove_over_blocks(case)


@check(
    "topology/block-size/P128-D64",
    feature="topology",
    level="extended",
    shape=SMALLER_ON_D,
    applies=_claimed(SMALLER_ON_D),
)
def test_smaller_blocks_on_decode(case: Case) -> None:
    """Prefill with blocks of 128 tokens and decode with blocks of 64 transfer, with parity."""
    _prove_over_blocks(case)


@check(
    "topology/tensor-parallel/TP2-TP1",
    feature="topology",
    level="extended",
    shape=WIDER_PREFILL,
    applies=_claimed(WIDER_PREFILL),
)
def test_more_ranks_on_prefill(case: Case) -> None:
    """Prefill on two tensor-parallel ranks and decode on one transfer, with parity."""
    length = 2 * case.block + 5
    case.prove(_completion(case, f"of {length} tokens from two ranks to one", length))


def _prove_over_blocks(case: Case) -> None:
    sizes = case.pair.prefill.server.block_size, case.block
    case.saw("tokens per block on prefill and decode", sizes)
    length = 2 * max(sizes) + min(sizes) // 2
    over = f"of {length} tokens over blocks of {sizes[0]} and {sizes[1]}"
    case.prove(_completion(case, over, length))


def _completion(case: Case, over: str, length: int, *key: object) -> Ask:
    return Ask(
        f"completion {over}",
        "completions",
        lambda variant: completion(case.ids(length, *key, variant), max_tokens=8),
    )
