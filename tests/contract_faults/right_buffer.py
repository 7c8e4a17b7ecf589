"""A correct lookup buffer within one process."""

from __future__ import annotations

import threading
from typing import Any

from contract_faults.plain_tensors import PlainTensors


class RightBuffer:
    """Producer and consumer in one object. ``size`` is in bytes, over all parts of an entry."""

    def __init__(self, capacity: int) -> None:
        self.capacity, self.entries = capacity, list[list[Any]]()
        self.changed = threading.Condition()

    def insert(self, *entry: Any) -> None:
        with self.changed:
            self.changed.wait_for(lambda: self.fits(entry))
            self.entries.append(list(entry))
            self.changed.notify_all()

    def drop_select(self, input_tokens: Any, roi: Any) -> list[Any]:
        with self.changed:
            self.changed.wait_for(lambda: self.found(input_tokens, roi) is not None)
            entry = self.take(self.found(input_tokens, roi))
            self.changed.notify_all()
            return entry

    def close(self) -> None:
        return None

    def fits(self, entry: Any) -> bool:
        held = [part for parts in [*self.entries, entry] for part in parts]
        return sum(map(PlainTensors().size, held)) <= self.capacity

    def found(self, input_tokens: Any, roi: Any) -> int | None:
        for at, entry in enumerate(self.entries):
            if input_tokens is None or self.matches(entry, input_tokens, roi):
                return at
        return None

    def take(self, at: int) -> list[Any]:
        return self.entries.pop(at)

    def matches(self, entry: list[Any], input_tokens: Any, roi: Any) -> bool:
        pairs = list(zip(inside(entry[0], entry[1]), inside(input_tokens, roi), strict=False))
        return bool(pairs) and all(self.equal(one, other) for one, other in pairs)

    def equal(self, one: float, other: float) -> bool:
        return one == other


def inside(tokens: Any, roi: Any) -> list[float]:
    return [token for token, wanted in zip(tokens.values, roi.values, strict=True) if wanted]
