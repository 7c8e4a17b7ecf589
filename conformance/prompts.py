"""Prompts: natural text, exact lengths in tokens, different for every check and run seed.

Random letters make ties between the two likeliest tokens, and lengths in words say nothing
about blocks (tpu-inference#3369), so prompts are slices of a passage's token ids.
"""

from __future__ import annotations

import random
from functools import cached_property

from conformance.client import Client
from conformance.data import fixtures

# So many leading tokens are drawn one by one: the first block of two prompts then differs, and
# with it every later block's prefix-cache hash.
NONCE_TOKENS = 6


class Prompts:
    """Makes prompts for one model, with its tokenizer behind ``client``."""

    def __init__(self, client: Client, seed: int) -> None:
        self._client = client
        self.seed = seed

    @cached_property
    def _passage(self) -> str:
        return (fixtures() / "prompts" / "passage.txt").read_text(encoding="utf-8")

    @cached_property
    def _pool(self) -> list[int]:
        return self._client.tokenize(self._passage)

    def tokens(self, length: int, *key: object) -> list[int]:
        """``length`` token ids that depend on the run's seed and on ``key`` alone."""
        rng = self._rng(key)
        nonce = [rng.choice(self._pool) for _ in range(min(length, NONCE_TOKENS))]
        return nonce + self._slices(rng, length - len(nonce))

    def sibling(self, of: list[int], *key: object) -> list[int]:
        """As long as ``of`` and ending in the same token, but otherwise different.

        Decode computes the last prompt token itself, so if it holds the sibling's KV of all
        the others, it must continue exactly as the sibling does.
        """
        rng = self._rng(key)
        body = self.tokens(len(of) - 1, *key) if len(of) > 1 else []
        while body and body[0] == of[0]:
            body[0] = rng.choice(self._pool)
        return [*body, of[-1]]

    def text(self, words: int, *key: object) -> str:
        """At least ``words`` words of text, so at least as many tokens, that begin differently."""
        rng = self._rng(key)
        sentences = [s.strip() for s in self._passage.replace("\n", " ").split(". ") if s.strip()]
        parts = [f"Record {rng.randrange(10**6)} of ledger {rng.randrange(10**4)}"]
        while sum(len(part.split()) for part in parts) < words:
            parts.append(rng.choice(sentences))
        return ". ".join(parts) + "."

    def _slices(self, rng: random.Random, length: int) -> list[int]:
        ids: list[int] = []
        while len(ids) < length:
            start = rng.randrange(len(self._pool))
            ids += self._pool[start : start + 60]
        return ids[:length]

    def _rng(self, key: tuple[object, ...]) -> random.Random:
        return random.Random(repr((self.seed, *key)))
