"""Isolation: KV of one tenant, salt or adapter never serves a request of another.

Prefix caches and stores are keyed by what a prompt's KV depends on. A key that leaves the salt
out lets one user time another's prompts; one that leaves the adapter out gives wrong answers
(vllm#53495: ExampleConnector keys on raw tokens; vllm#44250, vllm#56643: LMCache).

Two models of the same shapes are worst: KV of one fits the other. A connector that hands over
params has to refuse those of another model's prefill, one that shares a store to tell its KV apart.
"""

from dataclasses import dataclass

from conformance import came_to, expect
from conformance.answer import Answer
from conformance.case import Case
from conformance.client import Body, Rejected
from conformance.developer import served_models
from conformance.metrics import Meter, TokenSources
from conformance.pair import Ask, Pair, completion
from conformance.parity import compare
from conformance.registry import check
from conformance.serving.deployment import Shape
from conformance.warm import must_cache_prefixes

ADAPTER = "tiny-llama-adapter"
ADAPTED = Shape(
    "adapter",
    args=(
        *("--enable-lora", "--max-lora-rank", "8"),
        *("--lora-modules", f"{ADAPTER}=${{model:{ADAPTER}}}"),
    ),
)
STRANGER = "tiny-llama-other"
ANOTHER_MODEL = "another model"
TWO_MODELS = Shape("two models", prefills=2, stranger=STRANGER)
# A variant of a request that the ladder does not use.
UNUSED = 10


@dataclass(frozen=True)
class Tenants:
    """One prompt as two tenants ask for it: what of the body tells them apart."""

    mine: Body
    theirs: Body

    def ask(self, case: Case, subject: str) -> Ask:
        """As the first of them, with fresh prompts."""
        return _completion(case, subject, self.mine)

    def of(self, body: Body) -> Body:
        """The same prompt as the other asks for it."""
        return {**body, **self.theirs}


@check(
    "isolation/salt",
    feature="isolation",
    cases=("decode", "prefill", "no salt"),
    core_cases=("decode", "prefill"),
)
def test_another_salt_never_hits(case: Case) -> None:
    """A prompt that was transferred under one cache_salt is not known under another, or without.

    The same salt has to hit, else salts are not what keeps them apart. Asked of prefill, the
    other salt's request still transfers, from KV computed for it.
    """
    must_cache_prefixes(case.pair.prefill, case.pair.decode)
    tenants = Tenants({"cache_salt": "one tenant's"}, {"cache_salt": "another tenant's"})
    if case.name == "no salt":
        tenants = Tenants({"cache_salt": "one tenant's"}, {"cache_salt": None})
    ask = tenants.ask(case, "completion with a cache_salt")
    case.prove(ask)
    if case.name == "prefill":
        _through_the_pair(case, ask, tenants, ask.body(UNUSED))
    else:
        _asked_of_decode(case, tenants, ask.body(0))


@check(
    "isolation/adapter",
    feature="isolation",
    level="extended",
    model="tiny-llama",
    shape=ADAPTED,
    cases=("adapter first", "base first"),
)
def test_an_adapter_and_its_base_never_share(case: Case) -> None:
    """The same prompt through the base model and through a LoRA adapter shares nothing.

    Each answer equals the reference's for that model, which differ; each transfers.
    """
    must_cache_prefixes(case.pair.prefill, case.pair.decode)
    base = case.pair.decode.server.model
    served = served_models(case.pair.decode)
    case.saw("models that decode serves", served)
    expect.true(ADAPTER in served, f"decode should serve {ADAPTER}", served)
    names: tuple[Body, Body] = ({"model": ADAPTER}, {"model": base})
    tenants = Tenants(*(names if case.name == "adapter first" else reversed(names)))
    ask = tenants.ask(case, f"completion by {tenants.mine['model']}")
    case.prove(ask)
    _must_answer_differently(case, ask.body(0), tenants)
    _asked_of_decode(case, tenants, ask.body(0))
    _through_the_pair(case, ask, tenants, ask.body(UNUSED))


@check(
    "isolation/model",
    feature="isolation",
    level="extended",
    model="tiny-llama",
    shape=TWO_MODELS,
    cases=("decode", "prefill"),
)
def test_another_models_kv_is_never_used(case: Case) -> None:
    """KV that a prefill instance of another model has computed of the same tokens is not used.

    Decode, sent from there, refuses or computes the prompt itself; prefill, asked after it, knows
    nothing of it and transfers its own KV. Afterwards the pair transfers as ever.
    """
    strange = case.pairs[-1]
    ask = _completion(case, "completion by the pair's own model", {})
    _must_serve_another_model(case, strange, ask.body(UNUSED))
    body = ask.body(UNUSED + 1)
    if case.name == "decode":
        _sent_from_the_other_model(case, strange, ask, body)
    else:
        _asked_after_the_other_model(case, strange, ask, body)
    case.prove(ask)


def _must_serve_another_model(case: Case, strange: Pair, body: Body) -> None:
    """Else nothing that follows tells of two models."""
    expect.equal(strange.prefill.server.model, STRANGER, "model of the other prefill instance")
    answer = strange.prefill.ask("completions", body)
    _must_differ(case, case.pair.expected("completions", body), answer, "the other model")


def _sent_from_the_other_model(case: Case, strange: Pair, ask: Ask, body: Body) -> None:
    """Decode gets what the other model's prefill hands over, or finds what that has stored."""
    try:
        exchange = strange.exchange(ask, body)
    except Rejected as refusal:
        expect.equal(refusal.where, "the decode server", f"who refuses, in {str(refusal)!r}")
        case.saw("answer of decode that is sent from another model", str(refusal))
        return
    found = TokenSources.of(exchange.decode_delta)
    case.saw("sources on decode of a prompt from another model", vars(found))
    _nothing_known(found, "decode", of=ANOTHER_MODEL)
    came_to.right(case, body, exchange.legs[0].decode)


def _asked_after_the_other_model(case: Case, strange: Pair, ask: Ask, body: Body) -> None:
    """The pair's own prefill is asked what the other model's has computed, and stored."""
    if strange.handoff(strange.place).at_once:
        strange.prefill.ask(ask.endpoint, body)
    else:
        strange.prefill_leg(ask.endpoint, body)
    exchange = case.pair.exchange(ask, body)
    found = TokenSources.of(exchange.prefill_delta)
    case.saw("sources on prefill of a prompt from another model", vars(found))
    _nothing_known(found, "prefill", of=ANOTHER_MODEL)
    came_to.transferred(case, body, exchange)
    came_to.right(case, body, exchange.legs[0].decode)


def _asked_of_decode(case: Case, tenants: Tenants, known: Body) -> None:
    """Without a handoff decode knows nothing of the other's, and all whole blocks of the own."""
    pair = case.pair
    meter = Meter.on(pair.decode)
    answer = pair.decode.ask("completions", tenants.of(known))
    found = TokenSources.of(meter.delta())
    case.saw("sources of the other tenant's prompt on decode", vars(found))
    _nothing_known(found, "decode")
    came_to.right(case, tenants.of(known), answer, "the other tenant's answer")
    meter = Meter.on(pair.decode)
    pair.decode.ask("completions", known)
    again = TokenSources.of(meter.delta())
    case.saw("sources of the first tenant's prompt, asked again", vars(again))
    whole = (answer.prompt_tokens - 1) // case.block * case.block
    expect.equal(again.local_cache_hit + again.external, whole, "tokens known of the own prompt")


def _through_the_pair(case: Case, ask: Ask, tenants: Tenants, body: Body) -> None:
    """Both legs for one, then for the other: neither side may know the prompt already."""
    pair = case.pair
    pair.exchange(ask, body)
    exchange = pair.exchange(ask, tenants.of(body))
    on_prefill = TokenSources.of(exchange.prefill_delta)
    case.saw("sources of the other tenant's prompt on prefill", vars(on_prefill))
    _nothing_known(on_prefill, "prefill")
    came_to.transferred(case, tenants.of(body), exchange)
    came_to.right(case, tenants.of(body), exchange.legs[0].decode, "the other tenant's answer")


def _nothing_known(found: TokenSources, side: str, of: str = "another tenant") -> None:
    known = {"local_cache_hit": found.local_cache_hit, "external": found.external}
    expect.equal(
        known,
        dict.fromkeys(known, 0),
        f"tokens that {side} knew of a prompt from {of}",
    )


def _must_answer_differently(case: Case, body: Body, tenants: Tenants) -> None:
    one, other = (case.pair.expected("completions", b) for b in (body, tenants.of(body)))
    _must_differ(case, one, other, "the reference with the adapter")


def _must_differ(case: Case, one: Answer, other: Answer, who: str) -> None:
    expect.true(
        not compare(one, other, case.pair.model.dtype).equal,
        f"{who} should answer otherwise",
        "one answer",
    )


def _completion(case: Case, subject: str, mine: Body) -> Ask:
    length = 2 * case.block + case.block // 2

    def body(variant: int) -> Body:
        return completion(case.ids(length, variant), max_tokens=12, **mine)

    return Ask(subject, "completions", body)
