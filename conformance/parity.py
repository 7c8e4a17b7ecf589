"""Parity: is this the answer the reference gives?

Token ids are compared one by one, log-probabilities beside them. Where the ids part, the
reference's own margin between its two likeliest tokens tells a near-tie from a difference: only
the second likeliest token may stand in for the first, and only within the tolerance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from conformance.answer import Answer

# How far the log-probability of the same token may differ, in nats, by the dtype the servers
# run. Chunking and cache hits reorder floating point sums; on one server, tiny-llama in float32,
# cold against cached, that moved log-probabilities by at most 3e-5 (vLLM 0.32.0, AVX2 CPU).
TOLERANCE = {"float32": 1e-3, "auto": 0.15, "bfloat16": 0.15, "float16": 0.05}


@dataclass(frozen=True)
class Comparison:
    """How two answers relate.

    ``compared``: tokens that were compared; ``first_difference``: index of the first token that
    differs; ``near_tie``: whether the reference's margin there is within the tolerance, and the
    token seen is its second likeliest;
    ``max_logprob_gap``: over the tokens before it, in nats. ``unit``: what was compared one by one,
    characters where the endpoint gives text alone.
    """

    compared: int
    first_difference: int | None
    near_tie: bool
    max_logprob_gap: float
    tolerance: float
    lengths: tuple[int, int]
    scored: bool = True
    unit: str = "token"

    @property
    def equal(self) -> bool:
        """Equal up to a near-tie, and log-probabilities within the tolerance throughout.

        Log-probabilities that are missing or not a number are not equal to any.
        """
        if self.compared == 0 or not self.scored or not self.max_logprob_gap <= self.tolerance:
            return False
        if self.first_difference is None:
            return self.lengths[0] == self.lengths[1]
        return self.near_tie

    def describe(self) -> str:
        """One phrase for a person."""
        gap = f"log-probabilities within {self.max_logprob_gap:.2g} nat"
        scores = f", {gap}" if self.unit == "token" else ""
        if self.compared == 0:
            missing = "token ids" if scores else "text"
            return f"nothing to compare: one of the answers has no {missing}"
        if not self.scored:
            return "log-probabilities are missing from the answer"
        if self.first_difference is None and self.lengths[0] == self.lengths[1]:
            return f"{self.compared} {self.unit}s equal{scores}"
        if self.first_difference is None:
            return f"{self.lengths[1]} {self.unit}s, but should be {self.lengths[0]}"
        kind = "near-tie" if self.near_tie else "difference"
        at = f"{kind} at {self.unit} {self.first_difference} of {self.lengths[0]}"
        return f"{at}, before it {gap}" if scores else at

    def figures(self) -> dict[str, object]:
        """For the report."""
        return {
            f"compared_{self.unit}s": self.compared,
            "first_difference": self.first_difference,
            "near_tie": self.near_tie,
            "max_logprob_gap_nat": round(self.max_logprob_gap, 7),
            "tolerance_nat": self.tolerance,
        }


def compare(reference: Answer, seen: Answer, dtype: str) -> Comparison:
    """Compare an answer with the reference's, both with token ids and log-probabilities.

    Where the endpoint gives neither (``/v1/messages``), the text is compared; a near-tie is then
    told by how the reference's tokens are spelled.
    """
    tolerance = TOLERANCE.get(dtype, TOLERANCE["auto"])
    textual = reference.text_only and seen.text_only
    wanted, found = (
        (reference.text, seen.text) if textual else (reference.token_ids, seen.token_ids)
    )
    pairs = list(zip(wanted, found, strict=False))
    first = next((i for i, (want, got) in enumerate(pairs) if want != got), None)
    upto = len(pairs) if first is None else first
    scores = list(zip(reference.logprobs[:upto], seen.logprobs[:upto], strict=False))
    gaps = [abs(want - got) for want, got in scores]
    return Comparison(
        compared=len(pairs),
        first_difference=first,
        near_tie=first is not None and _near_tie(reference, seen, first, tolerance),
        # max() would drop a NaN that is not first.
        max_logprob_gap=math.nan if any(map(math.isnan, gaps)) else max(gaps, default=0.0),
        tolerance=tolerance,
        lengths=(len(wanted), len(found)),
        scored=len(scores) >= min(upto, len(reference.logprobs)),
        unit="character" if textual else "token",
    )


def _near_tie(reference: Answer, seen: Answer, first: int, tolerance: float) -> bool:
    at, start = _token_at(reference.names, first) if reference.text_only else (first, 0)
    if at >= len(reference.margins) or reference.margins[at] > tolerance:
        return False
    runner = reference.runners[at] if at < len(reference.runners) else ""
    if reference.text_only:
        return bool(runner) and seen.text[start:].startswith(runner)
    if at < len(seen.names) and runner:
        return seen.names[at] == runner
    return at < len(reference.seconds) and seen.token_ids[at] == reference.seconds[at]


def _token_at(names: tuple[str, ...], character: int) -> tuple[int, int]:
    """Which token spells a character, and where in the text it begins."""
    start = 0
    for number, name in enumerate(names):
        if character < start + len(name):
            return number, start
        start += len(name)
    return len(names), start
