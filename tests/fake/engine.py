"""The toy engine: a prefix cache, a connector, and the books on where tokens came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fake import model
from fake.connectors import NoConnector, Params
from fake.faults import Faults
from fake.grammar import constrained_text
from fake.model import BLOCK, KV_LIMIT, Token


@dataclass(frozen=True)
class Finished:
    """A request that has left the engine."""

    tokens: list[Token]
    reason: str
    sources: dict[str, int]
    moved: int
    params: Params
    looked_up: int = 0
    failed: int = 0


@dataclass
class Engine:
    """Serves one request after the other; everything is greedy."""

    connector: NoConnector
    _cache: dict[tuple[str, tuple[int, ...]], list[int]] = field(default_factory=dict)

    def generate(
        self, request: str, ids: list[int], body: dict[str, Any], faults: Faults
    ) -> Finished:
        """Prefill by what is cached, handed over or computed; then answer."""
        params = body.get("kv_transfer_params") or {}
        salt = body.get("cache_salt") or ""
        cached = self._cached(salt, ids)
        loaded, moved = self._load(ids, params, faults)
        if len(loaded) <= len(cached):
            loaded, moved = [], 0
        held = cached + loaded[len(cached) :]
        kv = model.extend_kv(held[: len(ids) - 1], ids)
        if "claim" in faults:
            kv = model.extend_kv([], ids)
        self._remember(salt, ids, kv)
        returned = self.connector.save(request, ids, kv, params)
        tokens, reason = _answer(kv[:-1], ids[-1], body, faults)
        return Finished(
            tokens=tokens,
            reason=reason,
            sources={
                "local_cache_hit": len(cached),
                "external_kv_transfer": max(len(loaded) - len(cached), 0)
                - ("miscount" in faults and bool(loaded)),
                "local_compute": len(ids) - len(held),
            },
            moved=0 if "no_bytes" in faults else moved,
            looked_up=len(ids) - len(cached) if self.connector.looks_up else 0,
            failed=int("fail_fetch" in faults and bool(params.get("do_remote_prefill"))),
            params={} if "no_params" in faults else returned,
        )

    def _load(self, ids: list[int], params: Params, faults: Faults) -> tuple[list[int], int]:
        if "recompute" in faults or "fail_fetch" in faults:
            return [], 0
        kv, moved = self.connector.load(ids, params)
        if "half" in faults:
            kv = kv[: len(kv) // 2 // BLOCK * BLOCK]
        if "make_up" in faults and not kv:
            kv = [7] * (len(ids) - 1)
        if "wrong_kv" in faults:
            kv = [(entry + 1) % KV_LIMIT for entry in kv]
        return kv, moved

    def _cached(self, salt: str, ids: Sequence[int]) -> list[int]:
        """KV of the longest run of whole blocks below the last token that was seen before."""
        for end in range((len(ids) - 1) // BLOCK * BLOCK, 0, -BLOCK):
            if (salt, tuple(ids[:end])) in self._cache:
                return self._cache[salt, tuple(ids[:end])]
        return []

    def _remember(self, salt: str, ids: Sequence[int], kv: list[int]) -> None:
        for end in range(BLOCK, len(ids) + 1, BLOCK):
            self._cache.setdefault((salt, tuple(ids[:end])), kv[:end])


def _answer(
    kv: list[int], last: int, body: dict[str, Any], faults: Faults
) -> tuple[list[Token], str]:
    limit = body.get("max_completion_tokens") or body.get("max_tokens") or 16
    if "empty_text" in faults:
        return [], "stop"
    if "constant" in faults:
        kv, last = [], 0
    text = constrained_text(body, model.state_of(kv, last))
    if text is None:
        return model.answer(kv, last, limit), "length"
    tokens = model.spell(kv, last, text)
    return tokens[:limit], "stop" if len(tokens) <= limit else "length"
