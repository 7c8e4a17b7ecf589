"""vLLM 0.12's own pipe and lookup buffer against the contracts: what holds and what does not.

They need that release's Python, with pytest in it::

    KV_CONFORMANCE_VLLM_0_12=/path/to/python pytest tests/test_contracts_vllm_0_12.py
"""

from __future__ import annotations

import os

import pytest
from contract_kill import clauses, messages, red, tried

from conformance.contract_results import ClauseResult

PYTHON = os.environ.get("KV_CONFORMANCE_VLLM_0_12", "")
pytestmark = [
    pytest.mark.skipif(
        not PYTHON, reason="KV_CONFORMANCE_VLLM_0_12 names no Python with vLLM 0.12"
    ),
    pytest.mark.timeout(600),
]
# docs/contracts.md tells why.
KNOWN = {
    "PyNcclPipe": set[str](),
    "SimpleBuffer": {"close_token_ids_are_told_apart", "none_selects_any"},
}


@pytest.fixture(scope="module")
def results() -> list[ClauseResult]:
    return tried("contract_real/vllm_0_12.py", PYTHON)


@pytest.mark.parametrize("name", KNOWN)
def test_only_the_known_findings_are_red(results: list[ClauseResult], name: str) -> None:
    assert red(results, name) == KNOWN[name], messages(results, name)
    assert len(clauses(results, name)) > len(KNOWN[name])
