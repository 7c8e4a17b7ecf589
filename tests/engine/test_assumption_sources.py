"""The files of vLLM that assumptions are read from are where they are said to be."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from conformance.assumptions.assumption import Assumption, all_assumptions


@pytest.mark.parametrize("known", all_assumptions(), ids=lambda known: known.id)
def test_its_sources_exist(known: Assumption) -> None:
    spec = find_spec("vllm")
    if spec is None or spec.origin is None:
        pytest.skip("vLLM is not installed here: install 'kv-conformance[cpu]'")
    missing = [
        source
        for source in known.source.split(", ")
        if not (Path(spec.origin).parent / source).exists()
    ]
    assert missing == []
