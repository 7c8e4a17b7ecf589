"""Whose KV is whose: salts keep prompts apart, adapters give the same tokens other KV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from conformance.scripted import variants
from conformance.scripted.faults import Faults
from conformance.scripted.model import VOCABULARY

# An adapter sees every token as another.
SHIFT = 7919
# So does a model with other weights.
OTHER_WEIGHTS = {"tiny-llama-other": 104729}


@dataclass(frozen=True)
class Tenant:
    """Of one request: ``salt`` of the cache, ``stored`` under which salt, ``shift`` of tokens.

    Stores know no salt unless told to, as vLLM's example (vllm#53495).
    """

    salt: str
    stored: str
    shift: int
    known_by_tokens: bool

    def seen(self, ids: Sequence[int]) -> list[int]:
        """The tokens that KV is made of."""
        return [(token + self.shift) % VOCABULARY for token in ids]

    def known(self, ids: Sequence[int]) -> list[int]:
        """The tokens under which that KV is found again."""
        return list(ids) if self.known_by_tokens else self.seen(ids)


def of(body: dict[str, Any], adapters: Sequence[str], faults: Faults, weights: int = 0) -> Tenant:
    """Who asks, of a model that moves all tokens by ``weights``."""
    salt = body.get("cache_salt") or ""
    adapted = body.get("model") in adapters and "deaf_adapter" not in faults
    return Tenant(
        salt="" if "no_salt" in faults else salt,
        stored=salt if "salted_store" in faults else "",
        shift=SHIFT * adapted + variants.shift(body) + weights,
        known_by_tokens="no_adapter" in faults or "image_by_tokens" in faults,
    )


def of_weights(model: str) -> int:
    """How far a model moves what its tokens stand for."""
    return OTHER_WEIGHTS.get(model, 0)


def adapters(modules: Sequence[str]) -> list[str]:
    """Names in what ``--lora-modules`` was given, each ``name=path``."""
    return [module.partition("=")[0] for module in modules]
