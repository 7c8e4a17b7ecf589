"""What goes wrong where a prompt is partly known already, or comes in several chunks."""

from __future__ import annotations

from conformance.scripted.faults import Faults


def loaded(cached: list[int], kv: list[int], before: list[int], faults: Faults) -> list[int]:
    """What a connector loads, beside what is ``cached``; ``before``: what it loaded last."""
    if "others_kv" in faults and kv and before:
        return (before * (len(kv) // len(before) + 1))[: len(kv)]
    if not cached or len(kv) <= len(cached):
        return kv
    if "cold_only" in faults:
        return []
    if "misaligned" in faults:
        return kv[: len(cached)] + kv[: len(kv) - len(cached)]
    return kv


def counted(cached: list[int], kv: list[int], faults: Faults) -> int:
    """Tokens that count as loaded."""
    rest = max(len(kv) - len(cached), 0)
    return len(kv) if "counts_all" in faults and rest else rest


def saved(cached: list[int], kv: list[int], faults: Faults) -> list[int]:
    """What prefill hands over."""
    if "sends_computed" in faults:
        return [0] * len(cached) + kv[len(cached) :]
    if "first_chunk" in faults:
        first = faults.number("first_chunk")
        return kv[:first] + [0] * len(kv[first:])
    return kv
