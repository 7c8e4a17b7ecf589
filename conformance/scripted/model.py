"""The toy model: a tokenizer, a KV chain, and answers that depend on nothing but the KV held."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

VOCABULARY = 32_000
BLOCK = 16
# A KV entry is a whole number below 2**24, which a 32-bit float holds exactly.
KV_LIMIT = 1 << 24
# Letters of a token that spells a given text.
LETTERS = 2
_PIECE = re.compile(r"\s*\w+|\s*[^\w\s]")


@dataclass(frozen=True)
class Token:
    """One generated token, with the second likeliest beside it."""

    id: int
    text: str
    logprob: float
    other: int
    other_logprob: float


def tokenize(text: str) -> list[int]:
    """A stable id for every word and every sign."""
    return [number("word", piece.strip()) % VOCABULARY for piece in _PIECE.findall(text)]


def extend_kv(kv: Sequence[int], ids: Sequence[int]) -> list[int]:
    """KV of all of ``ids``, going on from the KV held of the first of them."""
    held = list(kv[: len(ids)])
    for token in ids[len(held) :]:
        held.append(number("kv", held[-1] if held else 0, token) % KV_LIMIT)
    return held


def spell(kv: Sequence[int], last: int, text: str) -> list[Token]:
    """A given text as tokens of this model, a few letters each; scores depend on the KV."""
    state = state_of(kv, last)
    pieces = [text[at : at + LETTERS] for at in range(0, len(text), LETTERS)]
    return [
        _token(state, step, piece, number("word", piece) % VOCABULARY)
        for step, piece in enumerate(pieces)
    ]


def state_of(kv: Sequence[int], last: int) -> int:
    """All that the model knows when it begins to answer."""
    packed = struct.pack(f"<{len(kv)}I", *kv)
    return int.from_bytes(blake2b(packed + struct.pack("<I", last), digest_size=8).digest(), "big")


def _token(state: int, step: int, text: str, chosen: int) -> Token:
    draw = number("draw", state, step)
    logprob = -0.1 - (draw >> 16) % 4000 / 1000
    # Never a near-tie, whatever the tolerance of the dtype.
    gap = 0.6 + (draw >> 32) % 1000 / 1000
    return Token(chosen, text, logprob, (chosen + 1) % VOCABULARY, logprob - gap)


def number(*parts: object) -> int:
    """A hash of anything that has a representation."""
    return int.from_bytes(blake2b(repr(parts).encode(), digest_size=8).digest(), "big")
