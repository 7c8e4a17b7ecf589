"""Order of the legs: a router may ask decode before prefill has answered, where that is allowed.

Mooncake's and MoRIIO's routers send both legs at once; decode then waits for KV that is not
computed yet, and must neither recompute it nor wait for ever.
"""

from conformance.case import Case
from conformance.handoffs import may_go_at_once
from conformance.pair import Ask, completion
from conformance.registry import check


@check(
    "legs/at-once",
    feature="leg-order",
    applies=lambda profile: may_go_at_once(profile.handoff, profile.python_folders()),
)
def test_both_legs_at_once(case: Case) -> None:
    """Decode that is asked before prefill has answered waits for the KV and continues from it."""
    length = 3 * case.block + 9
    case.prove(
        Ask(
            "completion with both legs sent at once",
            "completions",
            lambda variant: completion(case.ids(length, variant), max_tokens=12),
            at_once=True,
        )
    )
