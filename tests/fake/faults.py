"""What is broken on purpose: ``FAKE_VLLM_FAULT=[role:]name[:number],…``.

Without a role (``prefill``, ``decode``, ``reference``) every server has the fault.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

KNOWN = {
    "recompute": "decode ignores what was handed over, and says so in its counters",
    "claim": "decode counts a transfer, but answers from its own computation",
    "wrong_kv": "decode uses KV that was damaged on the way",
    "no_params": "prefill returns no kv_transfer_params",
    "die_at_start": "the engine's exception and its wrappers in the log, exit code 1",
    "port_in_use": "the first N starts find their port taken",
    "hang_at_start": "never listens",
    "die_on_request": "the process ends at its Nth generation request",
    "die_on_length": "the process ends at every prompt of N tokens",
    "never_settle": "/metrics stands still",
    "foreign": "one request more is counted as finished each time",
    "late": "a request is counted N milliseconds after its answer",
    "slow": "every request takes N milliseconds more",
    "empty_text": "answers without a token",
    "no_done": "streams without [DONE]",
    "spawn_children": "a grandchild in its own session, and a mapped file in /dev/shm",
}
ROLES = ("prefill", "decode", "reference")
VARIABLE = "FAKE_VLLM_FAULT"
# A folder in which servers count their starts; ``port_in_use`` needs it.
STATE_VARIABLE = "FAKE_VLLM_STATE"


@dataclass(frozen=True)
class Faults:
    """The faults of one server: names, with a number where they take one."""

    named: dict[str, int]

    def __contains__(self, name: str) -> bool:
        return name in self.named

    def number(self, name: str) -> int:
        """The number given with a fault; 0 without the fault."""
        return self.named.get(name, 0)


def faults_of(role: str) -> Faults:
    """Those that the environment asks for in a server of this role."""
    named: dict[str, int] = {}
    for entry in filter(None, os.environ.get(VARIABLE, "").split(",")):
        parts = entry.strip().split(":")
        scope = parts.pop(0) if parts[0] in ROLES else role
        if parts[0] not in KNOWN:
            raise SystemExit(f"{VARIABLE}: {entry!r} is unknown")
        if scope == role:
            named[parts[0]] = int(parts[1]) if len(parts) > 1 else 1
    return Faults(named)


def count_start(role: str) -> int:
    """How often a server of this role was started so far, this time included."""
    file = os.path.join(os.environ[STATE_VARIABLE], f"starts-{role}")
    with open(file, "a", encoding="ascii") as counted:
        counted.write("x")
    return os.path.getsize(file)
