"""Start: a connector works on a platform, or the engine refuses it there in clear words.

An unclear death costs an operator hours (SimpleCPUOffloadConnector on a CPU dies of
``'_StreamPlaceholder' has no attribute 'priority_range'``, vLLM 0.32.0), a hang more.
"""

from conformance import expect
from conformance.case import Case
from conformance.profile import Profile
from conformance.refusal import names_absence
from conformance.registry import check
from conformance.serving.deployment import Shape

WITHOUT_DAEMONS = Shape(
    "without daemons", prefills=1, decodes=0, daemons=False, start_limit_s=150.0
)


def _has_daemons(profile: Profile) -> bool:
    return bool(profile.daemons) and not profile.children


@check("start/ready", feature="start")
def test_a_pair_starts_or_is_refused_clearly(case: Case) -> None:
    """A pair becomes ready, or the engine refuses it at start in words that name the reason.

    A refusal, clear or not, is judged before this body runs (``conformance/refusal.py``).
    """
    for client in (case.pair.prefill, case.pair.decode):
        role = client.server.role
        expect.true(client.server.healthy(), f"the {role} server should be healthy", "not healthy")
        case.saw(f"{role} is ready, tokens per block", client.server.block_size)


@check(
    "start/without-daemons",
    feature="start",
    level="extended",
    shape=WITHOUT_DAEMONS,
    applies=_has_daemons,
)
def test_absent_daemons_are_missed_at_start(case: Case) -> None:
    """Without its daemons a server ends within 150 s, in words that name what is absent.

    A server that waits for long keeps a rolling update waiting, and its operator guessing: 300 s
    by LMCacheMPConnector's own setting (lmcache 0.5.6), before it says all that is needed.
    """
    limit = f"within {WITHOUT_DAEMONS.start_limit_s:.0f} s"
    problem = case.start()
    expect.true(problem is not None, "the server should refuse to start", "it became ready")
    assert problem is not None
    case.saw("the server's end", str(problem))
    words = problem.root_cause
    expect.true(words is not None, f"the server should have ended {limit}", str(problem))
    expect.true(names_absence(str(words)), "the last words should name what is absent", repr(words))
