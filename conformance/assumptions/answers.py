"""What an unstreamed answer says beside its text."""

from __future__ import annotations

from conformance import expect
from conformance.answer import all_answers
from conformance.assumptions.assumption import (
    ASKS,
    CHAT,
    COMPARED,
    COMPLETIONS,
    COUNTS,
    assume,
)
from conformance.assumptions.plain import FEW, REQUEST, Plain
from conformance.bodies import completion
from conformance.errors import NotHere
from conformance.handoffs import Handed, Place
from conformance.handoffs.nixl import ParamsFromPrefill
from conformance.metrics import FINISHED
from conformance.parity import compare


@assume(
    "answers/usage",
    source=f"{COMPLETIONS}, {CHAT}",
    relied_on=("answer.py", "ladder.py", "checks/test_usage.py", "checks/test_streaming.py"),
    needs=(*COUNTS, "token-ids/chat"),
)
def _usage(plain: Plain) -> object:
    """``usage`` counts the tokens of prompt and answer, and their sum."""
    counts = []
    for answer in (plain.cold.answer, plain.chat):
        prompt, said = len(answer.prompt_token_ids), len(answer.token_ids)
        wanted = {
            "prompt_tokens": prompt,
            "completion_tokens": said,
            "total_tokens": prompt + said,
        }
        found = {name: answer.usage.get(name) for name in wanted}
        expect.equal(found, wanted, "usage")
        counts.append(found)
    return counts


@assume(
    "answers/cached-tokens",
    source=f"{COMPLETIONS}, v1/engine/output_processor.py",
    relied_on=("answer.py", "checks/test_usage.py"),
    needs=COUNTS,
)
def _cached_tokens(plain: Plain) -> object:
    """``usage.prompt_tokens_details.cached_tokens`` is what the counters say was found in a
    cache, and 0 for a cold prompt."""
    told = [asked.answer.cached_tokens for asked in (plain.cold, plain.again)]
    if not plain.started and plain.cold.answer.usage.get("prompt_tokens_details") is None:
        raise NotHere("it was started without --enable-prompt-tokens-details")
    wanted = [asked.sources.local_cache_hit for asked in (plain.cold, plain.again)]
    expect.equal(told, wanted, "cached_tokens, cold and again")
    return told


@assume(
    "answers/one-token",
    source="v1/core/sched/utils.py",
    relied_on=("bodies.py", "endpoints.py", "pair.py", "checks/test_sampling.py"),
    needs=COUNTS,
)
def _one_token(plain: Plain) -> object:
    """With ``max_tokens`` 1, an answer has one token and the ``finish_reason`` length."""
    answer = plain.blocks.answer
    seen = len(answer.token_ids), answer.finish_reason
    expect.equal(seen, (1, "length"), "tokens and finish_reason")
    return seen


@assume(
    "answers/stop",
    source="v1/core/sched/utils.py, v1/engine/detokenizer.py",
    relied_on=("checks/test_stopping.py", "checks/test_sampling.py", "dialects.py"),
    needs=COUNTS,
)
def _stop(plain: Plain) -> object:
    """One of ``stop_token_ids`` is the last token of an answer, whose ``finish_reason`` is stop
    and is counted as such, and whose ``stop_reason`` is that token."""
    asked = plain.stopped
    (stop,) = asked.body["stop_token_ids"]
    choice = asked.answer.raw["choices"][0]
    seen = choice["finish_reason"], choice["stop_reason"], choice["token_ids"][-1]
    expect.equal(seen, ("stop", stop, stop), "finish_reason, stop_reason and last token")
    counted = round(asked.delta.total(FINISHED, finished_reason="stop"))
    expect.equal(counted, 1, "requests that were counted as stopped")
    return seen


@assume(
    "answers/repeatable",
    source="v1/sample/sampler.py",
    relied_on=("oracle.py", "parity.py", "ladder.py", "learned.py"),
    needs=COUNTS,
)
def _repeatable(plain: Plain) -> object:
    """A greedy request gets the same answer again, from cached KV and up to a near-tie."""
    found = compare(plain.cold.answer, plain.again.answer, "auto")
    expect.true(found.equal, "the answer should be the same again", found.describe())
    return found.describe()


@assume(
    "answers/choices",
    source=f"{COMPLETIONS}, v1/engine/parallel_sampling.py",
    relied_on=("answer.py", "several.py", "checks/test_choices.py", "checks/test_endpoints.py"),
    needs=COUNTS,
)
def _choices(plain: Plain) -> object:
    """Choices are numbered by ``index`` through the prompts of a list, ``n`` of each, and each
    has the token ids of its own prompt."""
    raw = plain.several.answer.raw
    indexes = [choice["index"] for choice in raw["choices"]]
    expect.equal(sorted(indexes), [0, 1, 2, 3], "indexes of the choices")
    one, two = (tuple(prompt) for prompt in plain.several.body["prompt"])
    prompts = [answer.prompt_token_ids for answer in all_answers(raw)]
    expect.equal(prompts, [one, one, two, two], "prompt_token_ids of the choices")
    return indexes


@assume(
    "answers/request-id",
    source="entrypoints/serve/engine/serving.py",
    relied_on=("endpoints.py", "handoffs/moriio.py", "handoffs/nixl.py"),
    needs=(*ASKS, "token-ids/chat"),
)
def _request_id(plain: Plain) -> object:
    """The header ``X-Request-Id`` becomes part of the answer's ``id``."""
    found = plain.chat.raw["id"]
    expect.true(REQUEST in found, f"id of the answer should have {REQUEST!r}", found)
    return found


@assume(
    "answers/no-params",
    source="v1/engine/core.py, v1/core/sched/scheduler.py",
    relied_on=("assumed.py", "hello.py", "oracle.py", "checks/test_endpoints.py"),
    needs=COMPARED,
)
def _no_params(plain: Plain) -> object:
    """A server without a connector answers a request that has ``kv_transfer_params`` as any
    other, and returns none."""
    asked = Handed(ParamsFromPrefill(Place("", "")).prefill_params())
    body = asked.into(completion(plain.ids(FEW, "no params"), 1))
    answer = plain.client.ask("completions", body)
    expect.equal(len(answer.token_ids), 1, "tokens of the answer")
    expect.equal(answer.kv_transfer_params, None, "kv_transfer_params of the answer")
    return answer.kv_transfer_params
