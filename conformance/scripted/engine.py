"""The toy engine: a prefix cache, a connector, and the books on where tokens came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from conformance.scripted import gateway, model, sampling, tenants, variants, warmth
from conformance.scripted.connectors import NoConnector, Params
from conformance.scripted.faults import Faults
from conformance.scripted.model import BLOCK, KV_LIMIT, Token
from conformance.scripted.sampling import Drawn


@dataclass(frozen=True)
class Finished:
    """A request that has left the engine. ``requests``: what the engine counts it as."""

    choices: list[Drawn]
    sources: dict[str, int]
    moved: int
    params: Params
    looked_up: int = 0
    failed: int = 0
    requests: int = 1
    prompt_scores: list[dict[str, Any] | None] | None = None
    few_tops: bool = False

    @property
    def tokens(self) -> list[Token]:
        """Of the first choice."""
        return self.choices[0].tokens

    def aborted(self) -> Finished:
        """The same, ended half way."""
        half = [
            replace(one, tokens=one.tokens[: len(one.tokens) // 2], reason="abort")
            for one in self.choices
        ]
        return replace(self, choices=half)

    @property
    def reason(self) -> str:
        """Of the first choice."""
        return self.choices[0].reason


@dataclass
class Engine:
    """Serves one request after the other; everything is greedy."""

    connector: NoConnector
    adapters: list[str] = field(default_factory=list)
    weights: int = 0
    slept: bool = False
    _last: list[int] = field(default_factory=list)
    _cache: dict[tuple[str, tuple[int, ...]], list[int]] = field(default_factory=dict)

    def generate(
        self, request: str, ids: list[int], body: dict[str, Any], faults: Faults
    ) -> Finished:
        """Prefill by what is cached, handed over or computed; then answer."""
        params = _params(body)
        tenant = tenants.of(body, self.adapters, faults, self.weights)
        known, seen, salt = tenant.known(ids), tenant.seen(ids), tenant.salt
        scored = _scores_prompt(body)
        cached = [] if scored or "forgets" in faults else self._cached(salt, known)
        loaded, moved = self._load(known, {**params, "cache_salt": tenant.stored}, faults)
        loaded = warmth.loaded(cached, loaded, self._last, faults)
        self._last = loaded or self._last
        if len(loaded) <= len(cached) or (scored and "scores_hits" not in faults):
            loaded, moved = [], 0
        held = cached + loaded[len(cached) :]
        kv = model.extend_kv(held[: len(ids) - 1], seen)
        if "claim" in faults:
            kv = model.extend_kv([], seen)
        self._remember(salt, known, kv)
        handed = warmth.saved(cached, kv, faults)
        marked = {**params, "cache_salt": tenant.stored}
        returned = self.connector.save(request, known, handed, marked)
        if "neighbours_params" in faults:
            other = gateway.neighbour(known)
            kv_of_other = model.extend_kv([], other)
            returned = self.connector.save(f"{request}~other", other, kv_of_other, marked)
        self.connector.leaked += "keeps_kv" in faults
        choices = sampling.choices(kv[:-1], ids, body, faults)
        if "no_params_on_stop" in faults and choices[0].reason == "stop":
            returned = {}
        sources = {
            "local_cache_hit": len(cached),
            "external_kv_transfer": warmth.counted(cached, loaded, faults)
            - ("miscount" in faults and bool(loaded)),
            "local_compute": len(ids) - len(held),
        }
        return Finished(
            choices=choices,
            sources={name: amount * len(choices) for name, amount in sources.items()},
            requests=_requests(body, choices),
            prompt_scores=_prompt_scores(kv, ids, len(loaded)) if scored else None,
            few_tops="few_tops" in faults,
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
        if "lost_state" in faults:
            kv = variants.without_state(kv, len(ids))
        if "make_up" in faults and not kv:
            kv = [7] * (len(ids) - 1)
        if "wrong_kv" in faults or ("bad_dreams" in faults and self.slept):
            kv = [(entry + 1) % KV_LIMIT for entry in kv]
        return kv, moved

    def forget(self) -> None:
        """Empty the prefix cache."""
        self._cache.clear()

    def _cached(self, salt: str, ids: Sequence[int]) -> list[int]:
        """KV of the longest run of whole blocks below the last token that was seen before."""
        for end in range((len(ids) - 1) // BLOCK * BLOCK, 0, -BLOCK):
            if (salt, tuple(ids[:end])) in self._cache:
                return self._cache[salt, tuple(ids[:end])]
        return []

    def _remember(self, salt: str, ids: Sequence[int], kv: list[int]) -> None:
        for end in range(BLOCK, len(ids) + 1, BLOCK):
            self._cache.setdefault((salt, tuple(ids[:end])), kv[:end])


def _params(body: dict[str, Any]) -> Params:
    """What reaches the connector; beam search asks the engine anew, without them."""
    return {} if body.get("use_beam_search") else body.get("kv_transfer_params") or {}


def _requests(body: dict[str, Any], choices: list[Drawn]) -> int:
    """Every sequence is one; beam search is one for each beam at each step."""
    if not body.get("use_beam_search"):
        return len(choices)
    return 1 + len(choices) * (len(choices[0].tokens) - 1)


def _scores_prompt(body: dict[str, Any]) -> bool:
    """Whether every prompt token has to be computed, since its log-probability is wanted."""
    wanted = body.get("prompt_logprobs")
    if wanted is None and body.get("echo"):
        wanted = body.get("top_logprobs") or 0 if "messages" in body else body.get("logprobs")
    return wanted is not None


def _prompt_scores(kv: Sequence[int], ids: Sequence[int], held: int) -> list[dict[str, Any] | None]:
    """By token id; junk where KV was loaded, since nothing was computed there."""
    scores: list[dict[str, Any] | None] = [None]
    for at in range(1, len(ids)):
        value = 0.0 if at < held else -0.1 - model.number("prompt", kv[at - 1], ids[at]) % 900 / 100
        scores.append({str(ids[at]): {"logprob": value, "rank": 1, "decoded_token": "?"}})
    return scores
