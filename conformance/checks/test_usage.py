"""Usage: what is billed and what autoscalers read has to be exact on both sides of the handoff.

Decode reported every transferred token as cached, so that all prompts looked like cache hits
(vllm#43370, vllm#47136); prefix-cache hits of asynchronous loads were counted twice
(vllm#28585); usage was missing where endpoints were new (vllm#42748).
"""

from dataclasses import replace

from conformance import expect, looked_up
from conformance.answer import Answer, Json, Transcript
from conformance.case import Case
from conformance.errors import NotHere
from conformance.ladder import PROVEN
from conformance.metrics import FINISHED, Counters, TokenSources
from conformance.pair import Ask, Exchange, chat, completion
from conformance.proof_of_many import prove_at_once
from conformance.registry import check

ENDPOINTS = ("chat", "completions")
# What a streaming client asks for, by the name of the mode.
OPTIONS: dict[str, Json] = {
    "streamed": {"include_usage": True},
    "continuous": {"include_usage": True, "continuous_usage_stats": True},
    "not asked for": {},
}
# A variant of a request from which on none is used twice.
UNUSED = 10
COUNTED = ("prompt_tokens", "completion_tokens", "total_tokens")
COMPUTED = "vllm:request_prefill_kv_computed_tokens_sum"


@check(
    "usage/counts",
    feature="usage",
    cases=tuple(f"{kind}, {mode}" for kind in ENDPOINTS for mode in ("unstreamed", *OPTIONS)),
    core_cases=("chat, streamed", "completions, unstreamed"),
)
def test_token_counts_are_exact(case: Case) -> None:
    """Usage counts the prompt and the answer exactly, on P and on D, in every mode.

    P is also asked for a whole streamed answer, since its leg of a pair is never streamed.
    Unstreamed; streamed with ``include_usage``, in one last chunk; with
    ``continuous_usage_stats``, in every chunk as far as it has come; and nowhere in a stream that
    was not asked for it.
    """
    kind, mode = case.name.split(", ")
    climbed = case.prove(_ask(case, kind, mode))
    wanted = climbed.expected.counted
    if case.pair.hears_prefill:
        one = wanted["prompt_tokens"]
        first = {"prompt_tokens": one, "completion_tokens": 1, "total_tokens": one + 1}
        expect.equal(_counts(climbed.legs.prefill.usage), first, "usage of the prefill leg")
    if mode == "unstreamed":
        expect.equal(_counts(climbed.answer.usage), wanted, "usage of the decode leg")
    else:
        _streamed_counts(climbed.transcript, wanted, mode, "decode")
        ask = _ask(case, kind, mode)
        alone = case.pair.prefill.stream(ask.endpoint, ask.body(PROVEN))
        alone.must_be_whole()
        _streamed_counts(alone, wanted, mode, "prefill, asked for the whole answer,")
    case.saw("usage of the decode leg", climbed.answer.usage)


@check(
    "usage/cached-tokens",
    feature="usage",
    cases=tuple(f"{kind}, {mode}" for kind in ENDPOINTS for mode in ("unstreamed", "streamed")),
    core_cases=("chat, unstreamed",),
)
def test_cached_tokens_are_what_was_found(case: Case) -> None:
    """Cached tokens in usage are those that a cache spared, for a cold prompt and for its repeat.

    On P: what its counters say it did not compute. On D: P's figure where the handoff carries it
    (``remote_prefill_cached_tokens``; vLLM 0.32.0, ``v1/engine/output_processor.py``), since to
    a user the transfer is no cache hit; else what D's own counters say, transferred included.
    """
    if not case.pair.hears_prefill:
        raise NotHere("a router makes both legs, so what P answered is not seen")
    kind, mode = case.name.split(", ")
    ask = _ask(case, kind, mode)
    case.prove(replace(ask, body=lambda variant: ask.body(variant + UNUSED)))
    for which in ("cold", "again"):
        exchange = case.pair.exchange(ask, ask.body(0))
        _cached_as_counted(case, exchange, which)


@check(
    "usage/counters", feature="usage", cases=("unstreamed", "streamed"), core_cases=("unstreamed",)
)
def test_counters_add_up(case: Case) -> None:
    """After requests at once, counters of both sides have grown by exactly what was sent and said.

    Finished requests by reason, prompt tokens, generated tokens and prefix-cache hits: none
    lost, none twice. Together the prompts are below four blocks, so that in whatever order they
    come each is computed whole by one step: prompts that are not have rows of their own.
    """
    lengths = (2 * case.block + 3, case.block - 1, case.block // 2 + 1)
    bodies = [
        completion(case.ids(length, "at once", number), max_tokens=2 + 3 * number)
        for number, length in enumerate(lengths)
    ]
    ask = _ask(case, "completions", case.name)
    exchange = prove_at_once(case, ask, bodies)
    decoded = [legs.decode for legs in exchange.legs]
    prefilled = [legs.prefill for legs in exchange.legs] if case.pair.hears_prefill else []
    ones = len(bodies)
    _grew(case, "prefill", exchange.prefill_delta, sum(lengths), ones, ones, prefilled)
    said = sum(len(answer.token_ids) for answer in decoded)
    _grew(case, "decode", exchange.decode_delta, sum(lengths), said, ones, decoded)
    looked_up.once(case, exchange.decode_delta)


@check("usage/computed-tokens", feature="usage", level="extended")
def test_transferred_tokens_are_not_counted_as_computed(case: Case) -> None:
    """Tokens that ``vllm:request_prefill_kv_computed_tokens`` says were computed were computed.

    It is "new KV tokens computed during prefill (excluding cached tokens)", but vLLM 0.32.0
    subtracts P's cached tokens from D's prompt where the handoff carries them
    (``v1/metrics/loggers.py``), so D then seems to compute what it was given.
    """
    ask = _ask(case, "completions", "unstreamed")
    exchange = prove_at_once(case, ask, [ask.body(PROVEN)])
    for side, delta in (("prefill", exchange.prefill_delta), ("decode", exchange.decode_delta)):
        if not delta.has(COMPUTED):
            raise NotHere(f"the {side} server exports no {COMPUTED}")
        computed = TokenSources.of(delta).local_compute
        case.saw(f"tokens that {side} computed", {COMPUTED: delta.total(COMPUTED), "is": computed})
        expect.equal(delta.total(COMPUTED), computed, f"{COMPUTED} on {side}")


def _ask(case: Case, kind: str, mode: str) -> Ask:
    length = 2 * case.block + 5
    options: Json = {"stream_options": OPTIONS[mode]} if OPTIONS.get(mode) else {}
    stream = mode in OPTIONS
    if kind == "chat":
        return Ask(
            f"chat, usage {mode}",
            "chat/completions",
            lambda variant: chat(case.text(length, variant), **options),
            stream=stream,
        )
    return Ask(
        f"completion, usage {mode}",
        "completions",
        lambda variant: completion(case.ids(length, variant), **options),
        stream=stream,
    )


def _counts(usage: Json) -> dict[str, int | None]:
    return {name: usage.get(name) for name in COUNTED}


def _streamed_counts(transcript: Transcript, wanted: dict[str, int], mode: str, side: str) -> None:
    expect.not_empty(transcript.events, f"the stream of {side}")
    at = [number for number, event in enumerate(transcript.events) if event.get("usage")]
    if mode == "not asked for":
        expect.equal(at, [], f"positions of chunks of {side} with usage that was not asked for")
        return
    last = len(transcript.events) - 1
    expected = list(range(last + 1)) if mode == "continuous" else [last]
    expect.equal(at, expected, f"positions of chunks of {side} with usage")
    expect.equal(_counts(transcript.usages[-1]), wanted, f"usage of the last chunk of {side}")
    if mode == "continuous":
        _running_counts(transcript, wanted["prompt_tokens"], side)


def _running_counts(transcript: Transcript, prompt: int, side: str) -> None:
    """Every chunk counts the tokens that came with it and before it."""
    so_far = 0
    for number, event in enumerate(transcript.choice_events):
        so_far += len(event["choices"][0].get("token_ids") or ())
        wanted = {
            "prompt_tokens": prompt,
            "completion_tokens": so_far,
            "total_tokens": prompt + so_far,
        }
        expect.equal(_counts(event["usage"]), wanted, f"usage of chunk {number} of {side}")


def _cached_as_counted(case: Case, exchange: Exchange, which: str) -> None:
    legs = exchange.legs[0]
    params = legs.prefill.kv_transfer_params or {}
    on_p, on_d = (
        sources.local_cache_hit + sources.external
        for sources in map(TokenSources.of, (exchange.prefill_delta, exchange.decode_delta))
    )
    told = params.get("remote_prefill_cached_tokens")
    seen = legs.prefill.cached_tokens, legs.decode.cached_tokens
    case.saw(
        f"cached tokens, {which}",
        {"P": seen[0], "D": seen[1], "P counted": on_p, "D counted": on_d, "handed over": told},
    )
    if None in seen:
        raise NotHere("usage tells no cached tokens: start with --enable-prompt-tokens-details")
    expect.equal(seen[0], on_p, f"cached_tokens of the prefill leg, {which}")
    expected = on_d if told is None else on_p
    expect.equal(seen[1], expected, f"cached_tokens of the decode leg, {which}")


def _grew(
    case: Case,
    side: str,
    delta: Counters,
    prompt: int,
    said: int,
    requests: int,
    answers: list[Answer],
) -> None:
    """Everything that counts the same thing has grown alike."""
    sources = TokenSources.of(delta)
    wanted = {
        "vllm:prompt_tokens_total": prompt,
        "vllm:prompt_tokens_by_source_total": prompt,
        "vllm:prompt_tokens_cached_total": sources.local_cache_hit + sources.external,
        "vllm:request_prompt_tokens_sum": prompt,
        "vllm:request_prompt_tokens_count": requests,
        "vllm:generation_tokens_total": said,
        "vllm:request_generation_tokens_sum": said,
        "vllm:request_generation_tokens_count": requests,
        FINISHED: requests,
    }
    grown = {name: round(delta.total(name)) for name in wanted}
    case.saw(f"counters of {side}", grown)
    off = {name: (grown[name], due) for name, due in wanted.items() if grown[name] != due}
    expect.equal(off, {}, f"counters of {side} that grew by (this, and should by that)")
    for reason in {answer.finish_reason or "" for answer in answers}:
        count = sum(answer.finish_reason == reason for answer in answers)
        finished = round(delta.total(FINISHED, finished_reason=reason))
        expect.equal(finished, count, f"requests on {side} that finished with {reason}")
