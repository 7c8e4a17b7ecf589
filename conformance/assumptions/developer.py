"""Developer endpoints, of servers that were started with ``VLLM_SERVER_DEV_MODE=1``."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from conformance import expect
from conformance.answer import Answer
from conformance.assumptions.assumption import COUNTS, assume
from conformance.assumptions.plain import FEW, Plain
from conformance.bodies import completion
from conformance.developer import paused, reset_when_free, until_busy, until_paused
from conformance.metrics import FINISHED, Meter, TokenSources

# An answer that is under way until it is aborted.
LONG = 800


@assume(
    "developer/reset",
    source="entrypoints/serve/dev/cache, v1/core/block_pool.py",
    relied_on=("developer.py", "checks/test_lifecycle.py"),
    needs=(*COUNTS, "sources/repeated"),
    intrusive=True,
)
def _reset(plain: Plain) -> object:
    """``/reset_prefix_cache`` answers ``success`` once nothing is held, and a prompt that was
    known is then computed anew."""
    plain.again  # noqa: B018 (it is known by then)
    reset_when_free(plain.client)
    asked = plain.metered(completion(plain.cold.ids, 1))
    wanted = TokenSources(len(asked.ids), 0, 0)
    expect.equal(vars(asked.sources), vars(wanted), "sources after a reset")
    return vars(asked.sources)


@assume(
    "developer/pause",
    source="entrypoints/rl/online/api_router.py, v1/engine/core.py",
    relied_on=("developer.py", "checks/test_pause.py"),
    needs=(*COUNTS, "counters/busy"),
    intrusive=True,
)
def _pause(plain: Plain) -> object:
    """``/pause`` with mode abort ends what is under way with ``finish_reason`` abort, counted
    as such; ``/is_paused`` tells, and ``/resume`` ends it."""
    meter = Meter.on(plain.client)
    body = completion(plain.ids(FEW, "aborted"), LONG, ignore_eos=True)
    with ThreadPoolExecutor(1) as pool:
        under_way = pool.submit(plain.client.ask, "completions", body)
        until_busy(plain.client)
        with paused(plain.client, "abort"):
            until_paused(plain.client)
        answer: Answer = under_way.result()
    expect.equal(answer.finish_reason, "abort", "finish_reason of an aborted request")
    counted = round(meter.delta().total(FINISHED, finished_reason="abort"))
    expect.equal(counted, 1, "aborted requests that were counted")
    state = plain.client.page("/is_paused").json()["is_paused"]
    expect.equal(state, False, "is_paused after /resume")
    return {"tokens": len(answer.token_ids), "is_paused": state}
