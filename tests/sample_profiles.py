"""Profiles made in memory, for tests of what becomes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from conformance.profile import Profile

DOCUMENT: dict[str, Any] = {
    "name": "mine",
    "title": "MyConnector",
    "connector": "MyConnector",
    "summary": "Moves KV by pigeon.",
    "platforms": ["cpu"],
    "prefill": {"kv_role": "kv_producer"},
    "decode": {"kv_role": "kv_consumer"},
    "causality": {"method": "swap_params"},
}


def side(role: str, **fields: Any) -> dict[str, Any]:
    """One side of a profile's document."""
    kv_role = {"prefill": "kv_producer", "decode": "kv_consumer"}[role]
    return {"kv_role": kv_role, **fields}


def both(**fields: Any) -> dict[str, Any]:
    """Both sides, alike but for their role."""
    return {role: side(role, **fields) for role in ("prefill", "decode")}


def profile(**changes: Any) -> Profile:
    """A profile like :data:`DOCUMENT`, changed."""
    return Profile.model_validate({**DOCUMENT, "path": Path("/profiles/mine.yaml"), **changes})


def daemon(**changes: Any) -> dict[str, Any]:
    """A daemon of a profile's document."""
    command = ["${bin:master}", "--port=${port:master}"]
    return {"name": "master", "command": command, "ready_port": "master", **changes}
