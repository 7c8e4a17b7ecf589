"""Counters of requests and tokens: what moves, when, and what stands still."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from conformance import expect
from conformance.answer import Answer
from conformance.assumptions.assumption import COMPARED, COUNTS, assume
from conformance.assumptions.plain import FEW, SOME, Plain
from conformance.bodies import completion
from conformance.developer import until_free
from conformance.endpoints import requests_in
from conformance.errors import NotHere
from conformance.exposition import read
from conformance.metrics import (
    BY_SOURCE,
    CACHE_CONFIG,
    FINISHED,
    RUNNING,
    USAGE,
    WAITING,
    Meter,
    TokenSources,
)

LOGGERS = "v1/metrics/loggers.py"
SOURCES = ("local_compute", "local_cache_hit", "external_kv_transfer")
GROWING = (
    *(BY_SOURCE, FINISHED, "vllm:prompt_tokens_total", "vllm:prompt_tokens_cached_total"),
    *("vllm:generation_tokens_total", "vllm:num_preemptions_total"),
    *("vllm:request_prompt_tokens_sum", "vllm:request_prompt_tokens_count"),
    *("vllm:request_generation_tokens_sum", "vllm:request_generation_tokens_count"),
    "vllm:request_prefill_kv_computed_tokens_sum",
    *("vllm:external_prefix_cache_queries_total", "vllm:external_prefix_cache_hits_total"),
)
GAUGES = (RUNNING, WAITING, USAGE, CACHE_CONFIG)
# Lengths of answers that are under way long enough to be seen, on slow machines and on fast ones,
# and where ``/metrics`` is answered seldom because the API server's process runs the model too.
LONG = (24, 200, 1000)


@assume(
    "counters/exported",
    source=LOGGERS,
    relied_on=(
        *("metrics.py", "exposition.py", "developer.py", "seen.py"),
        *("checks/test_usage.py", "checks/test_metrics.py", "checks/test_preemption.py"),
    ),
    needs=(),
)
def _exported(plain: Plain) -> object:
    """``/metrics`` has every series that the suite reads, even those that stand at 0 without a
    connector, and those that it takes differences of are typed as counters or histograms."""
    page = read(plain.client)
    missing = sorted({*GROWING, *GAUGES} - page.names)
    expect.equal(missing, [], "series that /metrics lacks")
    expect.equal(sorted({*GROWING} - page.growing), [], "series that may fall")
    told = {dict(labels).get("source") for name, labels in page.values if name == BY_SOURCE}
    expect.equal(told, set(SOURCES), f"sources of {BY_SOURCE}")
    return len(page.names)


@assume(
    "counters/cache-config",
    source="v1/metrics/loggers.py, config/cache.py",
    relied_on=("metrics.py", "warm.py", "serving/server.py", "checks/test_preemption.py"),
    needs=("counters/exported",),
)
def _cache_config(plain: Plain) -> object:
    """``vllm:cache_config_info`` tells ``block_size`` in tokens, ``num_gpu_blocks``, and
    ``enable_prefix_caching`` as Python writes it."""
    counters = plain.client.counters()
    told = {
        name: counters.cache_config(name)
        for name in ("block_size", "num_gpu_blocks", "enable_prefix_caching")
    }
    for name in ("block_size", "num_gpu_blocks"):
        expect.true((told[name] or "").isdigit(), f"{name} should be a number", told[name])
    caching = told["enable_prefix_caching"]
    expect.true(caching in ("True", "False"), "enable_prefix_caching should be True/False", caching)
    return told


@assume(
    "counters/finished",
    source=f"{LOGGERS}, v1/engine/__init__.py",
    relied_on=("metrics.py", "client.py", "probe_trial.py", "checks/test_usage.py"),
    needs=(*COMPARED, "counters/exported"),
)
def _finished(plain: Plain) -> object:
    """``vllm:request_success_total`` grows by one for an answered request, under the
    ``finish_reason`` that the answer has."""
    reason = plain.cold.answer.finish_reason or ""
    grown = [
        round(plain.cold.delta.total(FINISHED, **labels))
        for labels in ({}, {"finished_reason": reason})
    ]
    expect.equal(grown, [1, 1], f"growth by one answer, and of that under {reason!r}")
    return reason


@assume(
    "counters/complete",
    source=f"{LOGGERS}, v1/engine/async_llm.py",
    relied_on=("metrics.py", "ladder.py", "checks/test_usage.py"),
    needs=COUNTS,
)
def _complete(plain: Plain) -> object:
    """Once a request is counted as finished, so are its prompt, its answer and its cache hits."""
    asked = plain.again
    prompt, hits = len(asked.ids), asked.sources.local_cache_hit
    wanted = {
        "vllm:prompt_tokens_total": prompt,
        "vllm:prompt_tokens_cached_total": hits,
        "vllm:request_prompt_tokens_sum": prompt,
        "vllm:request_prompt_tokens_count": 1,
        "vllm:generation_tokens_total": SOME,
        "vllm:request_generation_tokens_sum": SOME,
        "vllm:request_generation_tokens_count": 1,
        "vllm:request_prefill_kv_computed_tokens_sum": prompt - hits,
    }
    grown = {name: round(asked.delta.total(name)) for name in wanted}
    expect.equal(grown, wanted, "growth of the counters")
    return grown


@assume(
    "counters/requests",
    source="v1/engine/parallel_sampling.py, entrypoints/openai/completion/serving.py",
    relied_on=("endpoints.py", "client.py", "checks/test_choices.py"),
    needs=COUNTS,
)
def _requests(plain: Plain) -> object:
    """Every prompt of a list, and every choice of ``n``, counts as a request with its prompt."""
    asked = plain.several
    requests = requests_in("completions", asked.body)
    grown = {
        "requests": round(asked.delta.total(FINISHED)),
        "prompt tokens": round(asked.delta.total("vllm:prompt_tokens_total")),
    }
    prompts = 2 * sum(len(prompt) for prompt in asked.body["prompt"])
    expect.equal(grown, {"requests": requests, "prompt tokens": prompts}, "what was counted")
    return grown


@assume(
    "counters/refused",
    source="sampling_params.py, v1/engine/output_processor.py",
    relied_on=("client.py", "metrics.py", "checks/test_metrics.py"),
    needs=(*COUNTS, "errors/refused"),
)
def _refused(plain: Plain) -> object:
    """A request that is refused with HTTP 400 is counted nowhere."""
    meter = Meter.on(plain.client)
    wrong = completion(plain.ids(FEW, "refused"), temperature=-1.0)
    plain.client.send("completions", wrong)
    delta = meter.delta()
    counted = [round(delta.total(FINISHED)), TokenSources.of(delta).total]
    expect.equal(counted, [0, 0], "requests and prompt tokens that were counted")
    return counted


@assume(
    "counters/idle",
    source="v1/core/block_pool.py, v1/core/sched/scheduler.py",
    relied_on=("developer.py", "detours.py", "metrics.py", "checks/test_pause.py"),
    needs=COUNTS,
)
def _idle(plain: Plain) -> object:
    """When nothing is under way, no request is shown running or waiting and no KV in use,
    although prefixes are kept."""
    _must_be_ours(plain)
    plain.again  # noqa: B018 (something has been kept by then)
    until_free(plain.client)
    now = plain.client.counters()
    shown = {name: now.total(name) for name in (RUNNING, WAITING)}
    expect.equal(shown, {RUNNING: 0, WAITING: 0}, "requests shown when none is under way")
    return shown


@assume(
    "counters/busy",
    source="v1/core/sched/scheduler.py",
    relied_on=("developer.py", "hello.py", "checks/test_metrics.py", "checks/test_pause.py"),
    needs=COUNTS,
)
def _busy(plain: Plain) -> object:
    """While a request is under way, ``/metrics`` answers and shows it running and KV in use."""
    _must_be_ours(plain)
    running = used = 0.0
    for tokens in LONG:
        body = completion(plain.ids(FEW, "busy", tokens), tokens, ignore_eos=True)
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(plain.client.ask, "completions", body)
            running, used = _most_shown(plain, answer)
        if running:
            break
    expect.equal(running, 1, f"most of {RUNNING} while one request is under way")
    expect.true(used > 0, f"{USAGE} should be above 0 meanwhile", used)
    return {RUNNING: running, USAGE: used}


def _most_shown(plain: Plain, answer: Future[Answer]) -> tuple[float, float]:
    """The most requests that were shown running until the answer was there, and the most KV."""
    running, used = 0.0, 0.0
    while not answer.done():
        now = plain.client.counters()
        running, used = max(running, now.total(RUNNING)), max(used, now.total(USAGE))
    answer.result()
    return running, used


def _must_be_ours(plain: Plain) -> None:
    if not plain.ours:
        raise NotHere("others may be using this server")
