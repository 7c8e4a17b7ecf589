"""Where the project's own data lies: a checkout's ``fixtures/``, or the installed copy of it."""

from __future__ import annotations

import os
from pathlib import Path

_PACKAGE = Path(__file__).parent


def fixtures() -> Path:
    """The folder of model recipes, prompts and schemas."""
    checkout = _PACKAGE.parent / "fixtures"
    return checkout if (checkout / "models").is_dir() else _PACKAGE / "_fixtures"


def cache() -> Path:
    """Where built models and timings are kept: ``$KV_CONFORMANCE_CACHE``, else under XDG."""
    chosen = os.environ.get("KV_CONFORMANCE_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "kv-conformance"
