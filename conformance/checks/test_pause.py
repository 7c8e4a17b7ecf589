"""Pauses: what waits for a paused engine is neither dropped nor answered, and nothing held is lost.

Engines are paused to change weights (``/pause``, ``/resume``; vLLM 0.32.0, ``entrypoints/rl``)
while the other side of the pair goes on. A server without these endpoints is not_run.
"""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillWaiting

from conformance import came_to, expect
from conformance.answer import Answer
from conformance.case import Case
from conformance.client import Body
from conformance.developer import MODES, paused, told, until_busy, until_free, until_paused
from conformance.errors import SuiteError
from conformance.metrics import Meter, TokenSources
from conformance.pair import Ask, Exchange, completion
from conformance.registry import check

# Long enough for an answer by a server that does not heed its pause.
UNANSWERED_S = 1.0
UNUSED = 10
# So many answers of so many tokens are under way when decode is paused.
CROWD, LONG = 4, 1000


@check(
    "lifecycle/pause",
    feature="lifecycle",
    intrusive=True,
    level="extended",
    cases=tuple(f"{side} {mode}" for side in ("decode", "prefill") for mode in MODES),
)
def test_what_comes_during_a_pause_is_answered_after_it(case: Case) -> None:
    """A request that reaches a paused side waits, and transfers once that side is resumed."""
    side, _, mode = case.name.partition(" ")
    ask = _ask(case, f"completion while {side} is paused")
    case.prove(ask)
    client = case.pair.decode if side == "decode" else case.pair.prefill
    with ThreadPoolExecutor(1) as pool:
        with paused(client, mode):
            waiting = pool.submit(case.pair.exchange, ask, ask.body(UNUSED))
            _must_wait(case, waiting, side)
        exchange = waiting.result()
    came_to.transferred(case, ask.body(UNUSED), exchange)
    came_to.right(case, ask.body(UNUSED), exchange.legs[0].decode)


@check(
    "lifecycle/pause-between", feature="lifecycle", intrusive=True, level="extended", cases=MODES
)
def test_kv_that_waits_survives_a_pause_of_prefill(case: Case) -> None:
    """Decode gets the KV that prefill holds for it, although prefill is paused by then."""
    ask = _ask(case, "completion whose prefill is paused between the legs")
    case.prove(ask)
    pair, body = case.pair, ask.body(UNUSED)
    meter = Meter.on(pair.decode)
    _, handed = pair.prefill_leg(ask.endpoint, body)
    with ThreadPoolExecutor(1) as pool:
        # Answered once nothing is held any more, which is after decode's leg.
        pausing = pool.submit(told, pair.prefill, "/pause", mode=case.name)
        try:
            until_paused(pair.prefill)
            second, _ = pair.decode_leg(ask.endpoint, body, handed)
            pausing.result()
        finally:
            told(pair.prefill, "/resume")
    sources = TokenSources.of(meter.delta())
    case.saw("sources on decode", vars(sources))
    came_to.enough(case, sources, second.prompt_tokens)
    came_to.right(case, body, second)
    case.prove(Ask("completion after the pause", ask.endpoint, lambda v: ask.body(100 + v)))


@check("lifecycle/pause-abort", feature="lifecycle", intrusive=True, level="extended")
def test_a_pause_of_decode_aborts_what_is_under_way(case: Case) -> None:
    """Requests that a pause of decode aborts end as aborted, others are right, and none is held.

    They may be waiting for KV, loading it or be half answered; a transfer that ends after its
    request has none to return to (vllm#46240, vllm#43226).
    """
    ask = _ask(case, "completion before and after requests were aborted")
    case.prove(ask)
    pair = case.pair
    bodies = [completion(case.ids(3 * case.block, "long", n), LONG) for n in range(CROWD)]
    handed = [pair.prefill_leg("completions", body)[1] for body in bodies]
    with ThreadPoolExecutor(CROWD) as pool:
        asked = [
            pool.submit(pair.decode_leg, "completions", body, given)
            for body, given in zip(bodies, handed, strict=True)
        ]
        until_busy(pair.decode)
        with paused(pair.decode, "abort"):
            pass
        answers = [one.result()[0] for one in asked]
    _ended_rightly(case, bodies, answers)
    until_free(pair.prefill)
    until_free(pair.decode)
    case.prove(Ask(ask.subject, ask.endpoint, lambda v: ask.body(100 + v)))


def _ended_rightly(case: Case, bodies: Sequence[Body], answers: Sequence[Answer]) -> None:
    reasons = [answer.finish_reason for answer in answers]
    case.saw(
        "finish reasons, and tokens answered",
        [(a.finish_reason, len(a.token_ids)) for a in answers],
    )
    for body, answer in zip(bodies, answers, strict=True):
        if answer.finish_reason != "abort":
            came_to.right(case, body, answer, "an answer that was not aborted")
    if "abort" not in reasons:
        raise SuiteError(f"nothing was aborted, so nothing is proven: {reasons}")


def _ask(case: Case, subject: str) -> Ask:
    length = 2 * case.block + case.block // 2

    def body(variant: int) -> Body:
        return completion(case.ids(length, variant), max_tokens=10)

    return Ask(subject, "completions", body)


def _must_wait(case: Case, waiting: Future[Exchange], side: str) -> None:
    try:
        waiting.result(timeout=UNANSWERED_S)
    except StillWaiting:
        case.saw(f"seconds without an answer while {side} was paused", UNANSWERED_S)
    else:
        expect.true(False, f"a request should not be answered while {side} is paused", "answered")
