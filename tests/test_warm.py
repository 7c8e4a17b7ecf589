"""Prompts that decode knows in part: which sums count as proof, and servers that know none."""

from __future__ import annotations

from typing import Any, cast

import pytest

from conformance.client import Client
from conformance.errors import NotHere
from conformance.evidence import Outcome
from conformance.metrics import TokenSources, parse
from conformance.warm import accounting, must_cache_prefixes


@pytest.mark.parametrize(
    ("local", "cached", "external", "due", "outcome"),
    [
        (0, 32, 24, 24, Outcome.HELD),
        (8, 32, 16, 16, Outcome.HELD),
        (24, 32, 0, 24, Outcome.RECOMPUTED),
        (24, 32, 0, 0, Outcome.HELD),
        (0, 32, 56, 24, Outcome.BROKEN),  # what was there already is counted again
        (0, 48, 8, 24, Outcome.BLIND),  # decode knew more than it was told
        (56, 0, 0, 24, Outcome.BLIND),
        (-8, 32, 32, 24, Outcome.BROKEN),
    ],
)
def test_of_56_tokens_32_are_cached(
    local: int, cached: int, external: int, due: int, outcome: Outcome
) -> None:
    step = accounting(TokenSources(local, cached, external), 56, due, 32)
    assert step.outcome is outcome, step.summary


class Told:
    """A client whose ``/metrics`` says so."""

    def __init__(self, page: str) -> None:
        self.server = type("Server", (), {"role": "decode"})
        self.counters = lambda: parse(page)


@pytest.mark.parametrize("said", ['enable_prefix_caching="True",', ""])
def test_a_server_caches_prefixes_unless_it_says_otherwise(said: str) -> None:
    page = f'vllm:cache_config_info{{{said}block_size="16"}} 1.0\n'
    must_cache_prefixes(cast("Client", cast("Any", Told(page))))


def test_a_server_without_prefix_caching_cannot_show_hits() -> None:
    page = 'vllm:cache_config_info{enable_prefix_caching="False",block_size="16"} 1.0\n'
    with pytest.raises(NotHere, match="the decode server runs without prefix caching"):
        must_cache_prefixes(cast("Client", cast("Any", Told(page))))
