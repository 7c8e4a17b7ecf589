"""How the next token is chosen, by the sampling fields of requests as vLLM 0.32.0 reads them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from conformance.scripted import model, thinking
from conformance.scripted.faults import Faults
from conformance.scripted.grammar import constrained_text
from conformance.scripted.model import Token
from conformance.scripted.parsing import Parsing

EOS = 2
_LIKELY = 8


@dataclass(frozen=True)
class Drawn:
    """One choice of an answer; ``text`` ends before a stop string, whatever the tokens spell.

    ``parsing``: how a chat's text is told.
    """

    tokens: list[Token]
    reason: str
    text: str
    stop_reason: int | str | None = None
    leaks: bool = False
    parsing: Parsing | None = None


def choices(kv: list[int], ids: list[int], body: dict[str, Any], faults: Faults) -> list[Drawn]:
    """Every choice of an answer to a prompt, of which ``kv`` holds all tokens but the last."""
    limit = body.get("max_completion_tokens") or body.get("max_tokens") or 16
    if "empty_text" in faults:
        return [Drawn([], "stop", "")]
    if "constant" in faults:
        kv, ids = [], [0]
    found = _drawn(kv, ids, body, faults, limit)
    if "messages" not in body:
        return found
    parsing = Parsing(body, thinking.is_open(ids), faults)
    return [replace(drawn, parsing=parsing) for drawn in found]


def _drawn(
    kv: list[int], ids: list[int], body: dict[str, Any], faults: Faults, limit: int
) -> list[Drawn]:
    state, count = model.state_of(kv, ids[-1]), body.get("n") or 1
    text = constrained_text(body, state, faults)
    if thinking.is_open(ids):
        text = thinking.thought(body, state, faults) + (text or thinking.words(state, limit))
    if text is not None:
        tokens = model.spell(kv, ids[-1], text)
        return [_cut(tokens[:limit], "stop" if len(tokens) <= limit else "length")] * count
    if body.get("use_beam_search"):
        return _beams(state, limit, 1 if "one_beam" in faults else count, count)
    drawn = [_Draw(state, ids, body, faults, index).answer(limit) for index in range(count)]
    return drawn[:1] * count if "same_choices" in faults else drawn


class _Draw:
    """One sequence while it grows."""

    def __init__(
        self, state: int, prompt: Sequence[int], body: dict[str, Any], faults: Faults, index: int
    ) -> None:
        self.state, self.body, self.faults, self.index = state, body, faults, index
        self.prompt = set() if "forgets_prompt" in faults else set(prompt)
        self.stops = _listed(body.get("stop"))
        self.stop_ids = set(body.get("stop_token_ids") or ())
        self.ends = self.stop_ids if body.get("ignore_eos") else {*self.stop_ids, EOS}
        self.shows_end = bool(body.get("include_stop_str_in_output"))
        self.counted: list[int] = []
        if "counts_first" in faults:
            self.counted = [self._next([]).id]

    def answer(self, limit: int) -> Drawn:
        tokens: list[Token] = []
        text = ""
        while len(tokens) < limit:
            token = self._next(tokens)
            tokens.append(token)
            if token.id in self.ends:
                reason = token.id if token.id in self.stop_ids else None
                return Drawn(tokens, "stop", text + token.text * self.shows_end, reason)
            text += token.text
            for stop in self.stops:
                if stop in text:
                    end = text.find(stop) + len(stop) * self.shows_end
                    leaks = "leaks_stop" in self.faults
                    return Drawn(tokens, "stop", text[:end], stop, leaks)
        return Drawn(tokens, "length", text)

    def _next(self, before: list[Token]) -> Token:
        step, said = len(before), [*self.counted, *(token.id for token in before)]
        raw = _scores(self.state, step)
        named = self.body.get("allowed_token_ids")
        pool = named or [*raw, *map(int, self.body.get("logit_bias") or {})]
        chosen = max(pool, key=lambda token: self._wanted(token, step, said))
        return _token(self.state, step, chosen)

    def _wanted(self, token: int, step: int, said: list[int]) -> float:
        body = self.body
        if step < (body.get("min_tokens") or 0) and token in {EOS, *self.stop_ids}:
            return -math.inf
        if _text(token).strip() in (body.get("bad_words") or ()):
            return -math.inf
        score: float = _score(self.state, step, token)
        score += (body.get("logit_bias") or {}).get(str(token), 0)
        if token in self.prompt or token in said:
            score *= body.get("repetition_penalty") or 1  # scores are below 0
        score -= (body.get("presence_penalty") or 0) * (token in said)
        score -= (body.get("frequency_penalty") or 0) * said.count(token)
        most = body.get("top_k")
        if most and token not in list(_scores(self.state, step))[:most]:
            return -math.inf
        if body.get("temperature", 1) > 0:
            seed = (body.get("seed") or 0) + self.index
            luck = (1 + model.number("luck", seed, step, token) % 9999) / 10001
            score = score / body.get("temperature", 1) - math.log(-math.log(luck))
        return score


def _beams(state: int, limit: int, different: int, count: int) -> list[Drawn]:
    """Beams that part at their last token."""
    tokens = [_token(state, step, _likely(state, step)[0]) for step in range(limit - 1)]
    last = _likely(state, limit - 1)
    beams = [[*tokens, _token(state, limit - 1, last[n % different])] for n in range(count)]
    return [_cut(beam, "length") for beam in beams]


def _cut(tokens: list[Token], reason: str) -> Drawn:
    return Drawn(tokens, reason, "".join(token.text for token in tokens))


def _likely(state: int, step: int) -> list[int]:
    top = model.number("draw", state, step) % model.VOCABULARY
    return [(top + rank) % model.VOCABULARY for rank in range(_LIKELY)]


@lru_cache(64)
def _scores(state: int, step: int) -> dict[int, float]:
    """Log-probabilities of the likeliest tokens; the first two are never a near-tie."""
    draw = model.number("draw", state, step)
    best = -0.1 - (draw >> 16) % 4000 / 1000
    second = best - 0.6 - (draw >> 32) % 1000 / 1000
    likely = _likely(state, step)
    rest = {token: second - rank / 5 for rank, token in enumerate(likely[2:], start=1)}
    return {likely[0]: best, likely[1]: second, **rest}


def _score(state: int, step: int, token: int) -> float:
    unlikely = -12 - model.number("score", state, step, token) % 4000 / 1000
    return _scores(state, step).get(token, unlikely)


def _token(state: int, step: int, chosen: int) -> Token:
    scores = _scores(state, step)
    first, second = _likely(state, step)[:2]
    other = second if chosen == first else first
    return Token(chosen, _text(chosen), _score(state, step, chosen), other, scores[other])


def _text(token: int) -> str:
    return "" if token == EOS else f" {token:x}"


def _listed(value: str | list[str] | None) -> list[str]:
    return [value] if isinstance(value, str) else list(value or ())
