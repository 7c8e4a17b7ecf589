"""Which requests brought a server down: none of them is sent a third time."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from filelock import FileLock

from conformance.errors import CheckFailed

ENOUGH = 2
CRASHES = "crashes.json"
# Differ from one sending of the same request to the next.
_VOLATILE = ("kv_transfer_params", "cache_salt", "request_id")


def fingerprint(deployment: str, role: str, path: str, body: dict[str, Any]) -> str:
    """Names a request by what it asks of which server, not by when it was sent."""
    stable = {key: value for key, value in body.items() if key not in _VOLATILE}
    text = json.dumps([deployment, role, path, stable], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class CrashLedger:
    """The causes of server deaths by request, in a file that all workers of a run share."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = FileLock(file.with_suffix(".lock"))

    def refuse_third(self, request: str) -> None:
        """Raises :class:`CheckFailed` for a request that brought a server down twice."""
        causes = self._read().get(request, [])
        if len(causes) >= ENOUGH:
            raise CheckFailed(
                f"not sent: this request brought the server down {len(causes)} times before "
                f"({causes[-1]})"
            )

    def record(self, request: str, cause: str) -> None:
        """One more death by this request."""
        with self._lock:
            known = self._read()
            known.setdefault(request, []).append(cause)
            partial = self._file.with_suffix(".partial")
            partial.write_text(json.dumps(known, indent=1), encoding="utf-8")
            os.replace(partial, self._file)

    def _read(self) -> dict[str, list[str]]:
        try:
            found: dict[str, list[str]] = json.loads(self._file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        return found
