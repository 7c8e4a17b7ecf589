"""A scripted pair with OffloadingConnector's p2p tier (vLLM 0.32.0, ``tiering/p2p/manager.py``).

Blocks have the hash of all tokens up to their end, as vLLM's have, and KV of a token is the token.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

Params = dict[str, Any]
BLOCK = 4
HANG_S = 0.2


class LoadFailed(Exception):
    """Decode claimed blocks that never came; with kv_load_failure_policy=fail, HTTP 500."""


@dataclass(frozen=True)
class Outcome:
    """What decode counted as transferred, and the KV it answered from."""

    external: int
    kv: list[int]


@dataclass
class Prefill:
    """Parks the blocks of a request for whoever asks with its id, at its side channel's port."""

    port: int
    parked: dict[str, dict[int, list[int]]] = field(default_factory=dict)

    def complete(self, prompt: list[int], params: Params | None) -> Params | None:
        """P's answer returns nothing, whatever became of the blocks."""
        request = ((params or {}).get("remote_decoder") or {}).get("kv_request_id")
        if request:
            self.parked[request] = blocks_of(prompt)
        return None

    def fetch(self, request: str, hashes: list[int]) -> list[list[int]]:
        """Once each hash is parked under the id. Raises :class:`LoadFailed` past the limit."""
        deadline = time.monotonic() + HANG_S
        while not set(hashes) <= self.parked.get(request, {}).keys():
            if time.monotonic() > deadline:
                raise LoadFailed(f"{request} has not all of {len(hashes)} blocks")
            time.sleep(0.005)
        parked = self.parked.pop(request)
        return [parked[wanted] for wanted in hashes]


@dataclass
class Decode:
    """``network``: side channel port to instance."""

    network: dict[int, Prefill]

    def complete(self, prompt: list[int], params: Params | None) -> Outcome:
        """Without a complete ``remote_prefiller`` every block is a miss, and nothing is said."""
        source = (params or {}).get("remote_prefiller") or {}
        host, port = source.get("remote_host"), source.get("remote_port")
        request = source.get("kv_request_id")
        hashes = list(blocks_of(prompt))[: (len(prompt) - 1) // BLOCK]
        if not (host and port and request and hashes):
            return Outcome(0, prompt)
        if port not in self.network:
            raise LoadFailed(f"no session with {host}:{port}")
        found = self.network[port].fetch(request, hashes)
        kv = [token for block in found for token in block]
        return Outcome(len(kv), kv)


def blocks_of(prompt: list[int]) -> dict[int, list[int]]:
    """Whole blocks by their hashes."""
    ends = range(BLOCK, len(prompt) + 1, BLOCK)
    return {hash(tuple(prompt[:end])): prompt[end - BLOCK : end] for end in ends}
