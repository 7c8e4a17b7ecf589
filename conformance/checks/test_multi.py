"""MultiConnector: every child moves KV, not only the one that decode loads from.

Children save in parallel and the first with tokens loads, so a child that never saved, or that
cannot be loaded from, is hidden by the others until the day it is needed (vllm#40684).
"""

from conformance import looked_up
from conformance.case import Case
from conformance.children import as_child, reachable
from conformance.ladder import PROVEN
from conformance.pair import Ask, completion
from conformance.proof_of_many import prove_at_once
from conformance.registry import check


@check(
    "multi/each-child",
    feature="multi-connector",
    applies=lambda profile: bool(profile.parts),
    cases_of=reachable,
)
def test_each_child_transfers_by_itself(case: Case) -> None:
    """Asked with this child's handoff alone, decode continues from the KV that this child moved.

    Children behind a store are hidden by it; that they save is proven by every other cell.
    """
    length = 2 * case.block + case.block // 2
    case.prove(
        Ask(
            f"completion through the child {case.name}",
            "completions",
            lambda variant: completion(case.ids(length, variant), max_tokens=12),
        ),
        as_child(case.pair, case.name),
    )


@check("multi/one-child-knows", feature="multi-connector", applies=lambda p: bool(p.parts))
def test_a_prompt_that_all_children_hold_is_loaded_once(case: Case) -> None:
    """A prompt that every child has saved is loaded by one of them, and counted once."""
    length = 3 * case.block
    ask = Ask(
        "completion that every child saves",
        "completions",
        lambda variant: completion(case.ids(length, variant), max_tokens=12),
    )
    exchange = prove_at_once(case, ask, [ask.body(PROVEN)])
    looked_up.once(case, exchange.decode_delta)
