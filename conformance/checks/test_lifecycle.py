"""Lifecycle: caches emptied and engines put to sleep, with transfers around it.

What was emptied must not be served (vllm#42695: KV of old weights after an update), and what is
held for decode must not be lost or overwritten. The commands are vLLM's developer endpoints; a
server without them is not_run.
"""

from conformance import came_to, expect
from conformance.case import Case
from conformance.client import Body
from conformance.developer import reset, reset_when_free, told
from conformance.metrics import Meter, TokenSources
from conformance.pair import Ask, completion
from conformance.registry import check
from conformance.serving.deployment import Shape

UNUSED = 10
SLEEPER = Shape("sleep", args=("--enable-sleep-mode",))


@check(
    "lifecycle/reset",
    feature="lifecycle",
    intrusive=True,
    level="extended",
    cases=("decode", "prefill", "both"),
)
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
        came_to.transferred(case, ask.body(0), exchange)
    came_to.right(case, ask.body(0), exchange.legs[0].decode)


@check("lifecycle/reset-between", feature="lifecycle", intrusive=True, level="extended")
def test_a_reset_of_prefill_between_the_legs(case: Case) -> None:
    """Prefill that is told to empty its caches between the legs refuses, or decode recomputes.

    Whichever it is, the answer is right: blocks that wait for decode are not given to another.
    """
    ask = _ask(case, "completion with a reset between its legs")
    case.prove(ask)
    body = ask.body(UNUSED)
    meter = Meter.on(case.pair.decode)
    _, handed = case.pair.prefill_leg(ask.endpoint, body)
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
        came_to.enough(case, sources, second.prompt_tokens)
    came_to.right(case, body, second)


@check(
    "lifecycle/sleep",
    feature="lifecycle",
    intrusive=True,
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
