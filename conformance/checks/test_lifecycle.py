"""Lifecycle: caches emptied, engines paused and put to sleep, with transfers around it.

What was emptied must not be served (vllm#42695: KV of old weights after an update), what is held
for decode must not be lost or overwritten, and a paused side must neither drop nor answer what
waits. The commands are vLLM's developer endpoints; a server without them is not_run.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillWaiting

from conformance import expect
from conformance.case import Case
from conformance.client import Body
from conformance.developer import MODES, paused, reset, reset_when_free, told, until_paused
from conformance.metrics import Meter, TokenSources
from conformance.pair import Ask, Exchange, Legs, completion
from conformance.registry import check
from conformance.serving.deployment import Shape

# Long enough for an answer by a server that does not heed its pause.
UNANSWERED_S = 0.5
UNUSED = 10
SLEEPER = Shape("sleep", args=("--enable-sleep-mode",))


@check("lifecycle/reset", feature="lifecycle", cases=("decode", "prefill", "both"))
def test_a_prompt_is_transferred_again_after_a_reset(case: Case) -> None:
    """After /reset_prefix_cache?reset_external=true, a prompt known before is computed anew.

    A side that was reset knows nothing of it, in its own cache or in the connector's; the prompt
    transfers as if it were new.
    """
    ask = _ask(case, "completion before and after a reset")
    case.prove(ask)
    clients = {"decode": [case.pair.decode], "prefill": [case.pair.prefill]}
    for client in clients.get(case.name, [case.pair.prefill, case.pair.decode]):
        reset_when_free(client)
    if case.name != "prefill":
        _decode_knows_nothing(case, ask.body(0))
        reset_when_free(case.pair.decode)
    exchange = case.pair.exchange(ask, ask.body(0))
    on_prefill = TokenSources.of(exchange.prefill_delta)
    case.saw("sources on prefill after the reset", vars(on_prefill))
    if case.name != "decode":
        expect.equal(on_prefill.local_cache_hit, 0, "local_cache_hit of prefill after its reset")
    if case.name != "prefill":
        _is_transferred(case, ask.body(0), exchange)
    _is_right(case, ask.body(0), exchange.legs[0])


@check("lifecycle/reset-between", feature="lifecycle", level="extended")
def test_a_reset_of_prefill_between_the_legs(case: Case) -> None:
    """Prefill that is told to empty its caches between the legs refuses, or decode recomputes.

    Whichever it is, the answer is right: blocks that wait for decode are not given to another.
    """
    ask = _ask(case, "completion with a reset between its legs")
    case.prove(ask)
    body = ask.body(UNUSED)
    meter = Meter.on(case.pair.decode)
    first, handed = case.pair.prefill_leg(ask.endpoint, body)
    done = reset(case.pair.prefill)
    # Others take what the reset has freed.
    for number in range(3):
        other = completion(case.ids(2 * case.block, "other", number), max_tokens=1)
        case.pair.prefill.ask("completions", other)
    second, _ = case.pair.decode_leg(ask.endpoint, body, handed)
    sources = TokenSources.of(meter.delta())
    case.saw("prefill says that it did, and where decode's tokens came from", (done, vars(sources)))
    expect.equal(sources.total, second.prompt_tokens, "sum of decode's sources")
    if not done:
        _enough(case, sources, second.prompt_tokens)
    _is_right(case, body, Legs(first, second))


@check(
    "lifecycle/pause",
    feature="lifecycle",
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
    _is_transferred(case, ask.body(UNUSED), exchange)
    _is_right(case, ask.body(UNUSED), exchange.legs[0])


@check("lifecycle/pause-between", feature="lifecycle", level="extended", cases=MODES)
def test_kv_that_waits_survives_a_pause_of_prefill(case: Case) -> None:
    """Decode gets the KV that prefill holds for it, although prefill is paused by then."""
    ask = _ask(case, "completion whose prefill is paused between the legs")
    case.prove(ask)
    pair, body = case.pair, ask.body(UNUSED)
    meter = Meter.on(pair.decode)
    first, handed = pair.prefill_leg(ask.endpoint, body)
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
    _enough(case, sources, second.prompt_tokens)
    _is_right(case, body, Legs(first, second))
    case.prove(Ask("completion after the pause", ask.endpoint, lambda v: ask.body(100 + v)))


@check(
    "lifecycle/sleep",
    feature="lifecycle",
    level="extended",
    shape=SLEEPER,
    cases=("decode", "prefill", "both"),
)
def test_transfers_go_on_after_a_sleep(case: Case) -> None:
    """A side that slept, its KV memory given back, transfers again after it was woken up.

    Memory that was registered for transfers before is another's, or nobody's, by then.
    """
    ask = _ask(case, "completion before the sleep")
    case.prove(ask)
    clients = {"decode": [case.pair.decode], "prefill": [case.pair.prefill]}
    for client in clients.get(case.name, [case.pair.prefill, case.pair.decode]):
        reset_when_free(client)
        told(client, "/sleep", level="1")
        case.saw(f"{client.server.role} woke up as", told(client, "/wake_up"))
    case.prove(Ask("completion after the sleep", ask.endpoint, lambda v: ask.body(100 + v)))


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


def _decode_knows_nothing(case: Case, body: Body) -> None:
    meter = Meter.on(case.pair.decode)
    answer = case.pair.decode.ask("completions", body)
    found = TokenSources.of(meter.delta())
    case.saw("sources on decode after its reset, without a handoff", vars(found))
    expect.equal(found.local_cache_hit, 0, "local_cache_hit of decode after its reset")
    if case.pair.profile.capabilities.reset_cache is not False:
        # vLLM answers success=true for a connector that has no reset_cache (0.32.0, base.py).
        expect.equal(found.external, 0, "external tokens on decode after a reset with success=true")
    expect.equal(found.total, answer.prompt_tokens, "sum of decode's sources")


def _is_transferred(case: Case, body: Body, exchange: Exchange) -> None:
    sources = TokenSources.of(exchange.decode_delta)
    case.saw("sources on decode", vars(sources))
    expect.equal(sources.local_cache_hit, 0, "local_cache_hit of decode")
    expect.equal(sources.total, len(body["prompt"]), "sum of decode's sources")
    _enough(case, sources, len(body["prompt"]))


def _enough(case: Case, sources: TokenSources, length: int) -> None:
    promised = case.pair.profile.granularity.promised(length, case.block)
    expect.true(sources.external >= promised, f"at least {promised} should be external", sources)


def _is_right(case: Case, body: Body, legs: Legs) -> None:
    expected = case.pair.expected("completions", body)
    expect.equal(legs.decode.token_ids, expected.token_ids, "token ids of the answer")
