"""Tests that need a real vLLM beside the suite; without one they are skipped, and say so."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

LIMIT_S = 300
Child = Callable[[Path, Any], Any]


@pytest.fixture(scope="session")
def engine_child() -> Child:
    """Runs a script under the engine's Python: JSON in, JSON out."""
    if find_spec("vllm") is None:
        pytest.skip("vLLM is not importable here: install 'kv-conformance[cpu]'")
    return _run


def _run(script: Path, asked: Any) -> Any:
    done = subprocess.run(
        [sys.executable, str(script)],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])
