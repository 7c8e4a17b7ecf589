"""Start: a connector works on a platform, or the engine refuses it there in clear words.

An unclear death costs an operator hours (SimpleCPUOffloadConnector on a CPU dies of
``'_StreamPlaceholder' has no attribute 'priority_range'``, vLLM 0.32.0), a hang more.
"""

from conformance import expect
from conformance.case import Case
from conformance.registry import check


@check("start/ready", feature="start")
def test_a_pair_starts_or_is_refused_clearly(case: Case) -> None:
    """A pair becomes ready, or the engine refuses it at start in words that name the reason.

    A refusal, clear or not, is judged before this body runs (``conformance/refusal.py``).
    """
    for client in (case.pair.prefill, case.pair.decode):
        role = client.server.role
        expect.true(client.server.healthy(), f"the {role} server should be healthy", "not healthy")
        case.saw(f"{role} is ready, tokens per block", client.server.block_size)
