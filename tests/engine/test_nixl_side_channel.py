"""NIXL's side channel: why contracts choose their ports with care."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.conftest import Child

pytestmark = pytest.mark.timeout(400)  # importing vLLM

SCRIPT = Path(__file__).parent / "side_channel_child.py"


def test_a_port_that_is_taken_is_waited_for_without_end(engine_child: Child) -> None:
    """vllm-project/vllm#23756: with it mended, the engine ends and says so."""
    told = engine_child(SCRIPT, {})
    assert [reason for reason in told["died"] if "Address already in use" in reason], told
    assert "set_xfer_handshake_metadata" in told["waits_in"], told
