"""Where prompt tokens come from: what is computed, and what a prefix cache spares."""

from __future__ import annotations

from conformance import expect
from conformance.assumptions.assumption import COUNTS, assume
from conformance.assumptions.plain import Asked, Plain
from conformance.errors import NotHere
from conformance.metrics import BY_SOURCE, TokenSources

STATS = "v1/metrics/stats.py, v1/request.py"
CACHE = "v1/core/kv_cache_manager.py"
# What is of another source than it should be shows in everything that comes later.
COLD = (*COUNTS, "sources/sum")
CACHED = (*COLD, "counters/cache-config", "sources/cold")


@assume(
    "sources/sum",
    source=STATS,
    relied_on=("metrics.py", "ladder.py", "warm.py", "causality.py", "oracle.py"),
    needs=COUNTS,
)
def _sum(plain: Plain) -> object:
    """The sources local_compute, local_cache_hit and external_kv_transfer add up to the length
    of the prompt, for a cold prompt and for a known one."""
    for asked in (plain.cold, plain.again):
        expect.equal(asked.sources.total, len(asked.ids), "sum of the sources")
        expect.equal(round(asked.delta.total(BY_SOURCE)), len(asked.ids), "sum of all sources")
    return [vars(plain.cold.sources), vars(plain.again.sources)]


@assume(
    "sources/cold",
    source=STATS,
    relied_on=("ladder.py", "causality.py", "oracle.py", "direction.py"),
    needs=COLD,
)
def _cold(plain: Plain) -> object:
    """Every token of a prompt that was never seen is local_compute, of no other source."""
    return _are(plain.cold, TokenSources(len(plain.cold.ids), 0, 0))


@assume(
    "sources/repeated",
    source=CACHE,
    relied_on=(
        *("warm.py", "ladder.py", "checks/test_isolation.py", "checks/test_scheduler.py"),
        "checks/test_token_id_limits.py",
    ),
    needs=CACHED,
)
def _repeated(plain: Plain) -> object:
    """Of a prompt that was seen before, all whole blocks are local_cache_hit, and the rest is
    local_compute; nothing is external without a connector."""
    _must_cache(plain)
    return _are(plain.again, TokenSources(1, 2 * plain.block, 0))


@assume(
    "sources/last-token",
    source=CACHE,
    relied_on=("profile.py", "warm.py", "checks/test_isolation.py"),
    needs=(*CACHED, "sources/repeated"),
)
def _last_token(plain: Plain) -> object:
    """The last token of a prompt is always computed, so of a known prompt of whole blocks the
    last block is local_compute."""
    _must_cache(plain)
    return _are(plain.blocks, TokenSources(plain.block, plain.block, 0))


@assume(
    "sources/cache-salt",
    source="v1/core/kv_cache_utils.py",
    relied_on=("oracle.py", "checks/test_isolation.py", "checks/test_token_id_limits.py"),
    needs=CACHED,
)
def _cache_salt(plain: Plain) -> object:
    """A known prompt is computed anew under a ``cache_salt`` of its own."""
    plain.again  # noqa: B018 (it is known by then)
    return _are(plain.salted, TokenSources(len(plain.salted.ids), 0, 0))


def _are(asked: Asked, wanted: TokenSources) -> dict[str, int]:
    expect.equal(vars(asked.sources), vars(wanted), f"sources of {len(asked.ids)} prompt tokens")
    return vars(asked.sources)


def _must_cache(plain: Plain) -> None:
    plain.again  # noqa: B018 (its blocks are known by then)
    if plain.client.counters().cache_config("enable_prefix_caching") != "True":
        raise NotHere("the server keeps no prefixes (enable_prefix_caching)")
