"""Scheduler interplay, isolation and lifecycle on scripted servers: healthy, then each broken.

Every check has a fault of its own in one run, tied to it, and a verdict that the fault deserves.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.registry import all_checks
from conformance.scripted.faults import tied
from conformance.scripted.suite import Ended, Running, Suite, asking
from conformance.serving.deployment import PAIR
from conformance.verdict import Verdict

pytestmark = pytest.mark.timeout(500)

MINE = [c for c in all_checks() if c.feature in ("scheduler", "isolation", "lifecycle")]
ORDINARY = [found for found in MINE if found.shape == PAIR]
OWN = [found for found in MINE if found.shape != PAIR]
FAIL, DEGRADED, ERROR, NOT_RUN = Verdict.FAIL, Verdict.DEGRADED, Verdict.ERROR, Verdict.NOT_RUN

# Whose KV a request gets depends on who is there at the time: another's, or a stale one.
MIXED_UP = "got the answer to another's|not the reference's answer"
# Fault, verdict and a part of the message (one of several), by cell.
BROKEN: dict[str, tuple[str, Verdict, str]] = {
    "scheduler/prefix/decode/one block": ("decode:misaligned", FAIL, "not the reference's answer"),
    "scheduler/prefix/decode/all blocks": ("decode:counts_all", FAIL, "they sum to"),
    "scheduler/prefix/both/prefill knows more": ("decode:cold_only", DEGRADED, "recomputed"),
    "scheduler/prefix/both/decode does": ("decode:misaligned", FAIL, "not the reference's"),
    "scheduler/prefix/prefill/one block": ("prefill:sends_computed", FAIL, "token ids"),
    "scheduler/prefix/prefill/all blocks": ("prefill:forgets", FAIL, "local_cache_hit of prefill"),
    "scheduler/repeated/one by one": ("decode:misaligned", FAIL, "token ids"),
    "scheduler/repeated/at once": ("decode:misaligned", FAIL, "not the reference's answer"),
    "scheduler/chunks/T+2": ("prefill:first_chunk:512", FAIL, "not the reference's answer"),
    "scheduler/chunks/busy/prefill": ("prefill:first_chunk:512", FAIL, "not the reference's"),
    "scheduler/chunks/busy/decode": ("decode:others_kv", FAIL, MIXED_UP),
    "scheduler/crowd": ("decode:others_kv", FAIL, MIXED_UP),
    "scheduler/async/on": ("decode:others_kv", FAIL, MIXED_UP),
    "isolation/salt/decode": ("decode:no_salt", FAIL, "tokens that decode knew"),
    "isolation/salt/prefill": ("prefill:no_salt", FAIL, "tokens that prefill knew"),
    "isolation/salt/no salt": ("decode:no_salt", FAIL, "tokens that decode knew"),
    "lifecycle/reset/decode": ("decode:keeps_cache", FAIL, "local_cache_hit of decode after"),
    "lifecycle/reset/prefill": ("prefill:keeps_cache", FAIL, "local_cache_hit of prefill after"),
    "lifecycle/reset/both": ("prefill:never_free", FAIL, "blocks are still held"),
    "lifecycle/reset-between": ("prefill:resets_held", FAIL, "token ids of the answer"),
    "lifecycle/pause/decode keep": ("decode:deaf_to_pause", FAIL, "should not be answered while"),
    "lifecycle/pause/prefill abort": ("prefill:deaf_to_pause", FAIL, "should not be answered"),
    "lifecycle/pause/prefill wait": ("prefill:no_commands", NOT_RUN, "VLLM_SERVER_DEV_MODE=1"),
    "lifecycle/pause-abort": ("prefill:keeps_kv", FAIL, "does not give back every block"),
    "lifecycle/pause-between/keep": ("prefill:pause_loses", FAIL, "should be external"),
}
BROKEN_IN_OWN_SHAPES: dict[str, tuple[str, Verdict, str]] = {
    "scheduler/preemption/decode": ("decode:preempted_wrong", FAIL, "not the reference's answer"),
    "scheduler/preemption/prefill": ("prefill:never_preempts", ERROR, "nothing was preempted"),
    "scheduler/chunks/no-new-block": ("prefill:first_chunk:192", FAIL, "not the reference's"),
    "scheduler/priority": ("decode:preempted_wrong", FAIL, "not the reference's answer"),
    "scheduler/async/off": ("decode:others_kv", FAIL, MIXED_UP),
    "isolation/adapter/adapter first": ("decode:no_adapter", FAIL, "tokens that decode knew"),
    "isolation/adapter/base first": ("prefill:deaf_adapter", FAIL, "tokens that prefill knew"),
    "isolation/model/decode": ("decode:any_model", FAIL, "of a prompt from another model"),
    "isolation/model/prefill": ("prefill:make_up", FAIL, "tokens that prefill knew"),
    "lifecycle/sleep/decode": ("decode:bad_dreams", FAIL, "not the reference's answer"),
}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    made = Suite(tmp_path_factory.mktemp("scheduling"))
    made.pretend_built("tiny-llama", "tiny-llama-adapter", "tiny-llama-other")
    yield made
    assert made.left_behind() == []


@pytest.fixture(scope="module")
def runs(suite: Suite) -> Iterator[dict[str, Running]]:
    """Every run of this file, started."""
    both = ("--connector", "nixl", "--connector", "example")
    nixl = ("--connector", "nixl", "--keep-going")
    store = ("--connector", "example", "--check", "isolation/model")
    ids, own = asking(found.id for found in ORDINARY), asking(found.id for found in OWN)
    broken, own_broken = asking(BROKEN), asking(BROKEN_IN_OWN_SHAPES)
    made = {
        "healthy": suite.start(*both, *ids, fault="salted_store", name="healthy"),
        "own": suite.start("--connector", "nixl", *own, name="own"),
        "broken": suite.start(*nixl, *broken, fault=tied(BROKEN), name="broken"),
        "own broken": suite.start(
            *nixl, *own_broken, fault=tied(BROKEN_IN_OWN_SHAPES), name="own-broken"
        ),
        "store": suite.start(
            *("--connector", "example", "--check", "isolation/salt", "--check", "lifecycle/reset"),
            fault="keeps_store",
            name="store",
        ),
        "two models": suite.start(*store, name="two-models"),
        "models mixed up": suite.start(*store, fault="no_adapter", name="models-mixed-up"),
        "sync": suite.start(
            *("--connector", "nixl", "--check", "scheduler/async/on"),
            fault="decode:always_sync",
            name="sync",
        ),
        "awake": suite.start(
            *("--connector", "nixl", "--check", "lifecycle/sleep/both"),
            fault="no_sleep_mode",
            name="awake",
        ),
    }
    yield made
    for running in made.values():
        running.wait()


def not_passed(ended: Ended) -> dict[str, str]:
    return {
        f"{column.name}/{cell.check}": f"{cell.verdict}: {cell.message}"
        for column in ended.report.connectors
        for cell in column.cells
        if cell.verdict is not Verdict.PASS
    }


def test_a_healthy_pair_passes_every_check_on_ordinary_servers(runs: dict[str, Running]) -> None:
    ended = runs["healthy"].wait()
    assert not_passed(ended) == {}
    assert ended.report.timing.server_starts == 5
    cells = [cell for column in ended.report.connectors for cell in column.cells]
    assert all(cell.evidence.proofs for cell in cells)


def test_a_healthy_pair_passes_every_check_on_servers_of_its_own(runs: dict[str, Running]) -> None:
    assert not_passed(runs["own"].wait()) == {}


@pytest.mark.parametrize("cell", BROKEN)
def test_a_fault_turns_its_check_red(runs: dict[str, Running], cell: str) -> None:
    _, verdict, words = BROKEN[cell]
    seen = runs["broken"].wait().cell("nixl", cell)
    told = any(word in seen.message for word in words.split("|"))
    assert (seen.verdict, told) == (verdict, True), seen.message


@pytest.mark.parametrize("cell", BROKEN_IN_OWN_SHAPES)
def test_a_fault_turns_a_check_with_servers_of_its_own_red(
    runs: dict[str, Running], cell: str
) -> None:
    _, verdict, words = BROKEN_IN_OWN_SHAPES[cell]
    seen = runs["own broken"].wait().cell("nixl", cell)
    told = any(word in seen.message for word in words.split("|"))
    assert (seen.verdict, told) == (verdict, True), seen.message


def test_a_store_that_knows_no_salt_serves_another_tenant(runs: dict[str, Running]) -> None:
    cell = runs["store"].wait().cell("example", "isolation/salt/decode")
    assert cell.verdict is FAIL
    assert "'external': 32" in cell.message


def test_a_store_that_is_not_emptied_is_found_out(runs: dict[str, Running]) -> None:
    cell = runs["store"].wait().cell("example", "lifecycle/reset/decode")
    assert cell.verdict is FAIL
    assert "external tokens on decode after a reset with success=true=32" in cell.message


@pytest.mark.parametrize("side", ["decode", "prefill"])
def test_a_store_that_knows_no_model_gives_one_the_kv_of_another(
    runs: dict[str, Running], side: str
) -> None:
    assert not_passed(runs["two models"].wait()) == {}
    cell = runs["models mixed up"].wait().cell("example", f"isolation/model/{side}")
    assert cell.verdict is FAIL
    assert f"tokens that {side} knew of a prompt from another model" in cell.message
    assert "'external': 32" in cell.message


def test_decode_may_refuse_what_another_models_prefill_hands_over(
    runs: dict[str, Running],
) -> None:
    cell = runs["own"].wait().cell("nixl", "isolation/model/decode")
    assert cell.verdict is Verdict.PASS
    assert "the handshake found another model" in str(cell.evidence)


def test_a_platform_that_turns_asynchronous_scheduling_off_is_not_run(
    runs: dict[str, Running],
) -> None:
    cell = runs["sync"].wait().cell("nixl", "scheduler/async/on")
    assert cell.verdict is NOT_RUN
    assert "decode runs with async_scheduling=False here" in cell.message


def test_a_platform_without_sleep_mode_is_not_run_in_its_own_words(
    runs: dict[str, Running],
) -> None:
    cell = runs["awake"].wait().cell("nixl", "lifecycle/sleep/both")
    assert cell.verdict is NOT_RUN
    assert "Sleep mode is not supported on current platform" in cell.message
