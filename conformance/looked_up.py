"""What the scheduler looked up in the connector, and found: each prompt once, each token once.

Hits of asynchronous loads were counted twice (vllm#28585).
"""

from __future__ import annotations

from conformance import expect
from conformance.case import Case
from conformance.metrics import Counters, TokenSources


def once(case: Case, delta: Counters) -> None:
    """Prompts are looked up in the connector once, less what decode's own cache held."""
    sources = TokenSources.of(delta)
    wanted = {
        "vllm:external_prefix_cache_queries_total": sources.total - sources.local_cache_hit,
        "vllm:external_prefix_cache_hits_total": sources.external,
    }
    found = {name: round(delta.total(name)) for name in wanted}
    case.saw("tokens looked up in the connector and found", found)
    expect.equal(found, wanted, "tokens looked up in the connector and found")
