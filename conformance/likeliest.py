"""Log-probabilities beside the chosen ones: the likeliest tokens, and those of the prompt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from conformance.answer import Answer, Json
from conformance.parity import TOLERANCE

# By the name or id of a token, in nats; ``None`` where there is none, as of a first prompt token.
Scores = dict[str, float] | None


def likeliest(answer: Answer) -> list[Scores]:
    """The likeliest tokens at each place of an unstreamed answer."""
    block = answer.raw["choices"][0]["logprobs"] or {}
    if block.get("content") is not None:
        return [_named(item["top_logprobs"]) for item in block["content"]]
    return [dict(top) if top else None for top in block.get("top_logprobs") or ()]


def of_prompt(answer: Answer) -> list[Scores]:
    """``prompt_logprobs`` of an unstreamed answer, of either endpoint."""
    found = answer.raw.get("prompt_logprobs") or answer.raw["choices"][0].get("prompt_logprobs")
    return [
        {name: entry["logprob"] for name, entry in place.items()} if place else None
        for place in found or ()
    ]


def differences(wanted: Sequence[Scores], seen: Sequence[Scores], dtype: str) -> list[str]:
    """Where they differ by more than the tolerance of the dtype, in words; empty if nowhere.

    A token may be missing from one of them if it is as likely as the last that is there.
    """
    tolerance = TOLERANCE.get(dtype, TOLERANCE["auto"])
    if len(wanted) != len(seen):
        return [f"{len(seen)} places, but should be {len(wanted)}"]
    return [
        f"place {at}: {got}, but should be {want}"
        for at, (want, got) in enumerate(zip(wanted, seen, strict=True))
        if not _alike(want, got, tolerance)
    ]


def _alike(want: Scores, got: Scores, tolerance: float) -> bool:
    if not want or not got:
        return want == got
    if len(want) != len(got):
        return False
    both = want.keys() & got.keys()
    near = all(abs(want[name] - got[name]) <= tolerance for name in both)
    return near and _excused(want, both, tolerance) and _excused(got, both, tolerance)


def _excused(scores: dict[str, float], both: Iterable[str], tolerance: float) -> bool:
    least = min(scores.values()) + tolerance
    return all(value <= least for name, value in scores.items() if name not in set(both))


def _named(tops: list[Json]) -> dict[str, Any]:
    return {top["token"]: top["logprob"] for top in tops}
