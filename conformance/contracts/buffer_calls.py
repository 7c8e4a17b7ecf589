"""The calls that a lookup buffer's clauses are made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

from conformance.contracts.tensors import Tensors, TorchTensors
from conformance.contracts.waiting import Call, WaitingContract

PARTS = ("input_tokens", "roi", "key", "value", "hidden")


class BufferEnds(NamedTuple):
    """Prefill inserts, decode selects; a buffer within one process is both."""

    producer: Any
    consumer: Any


class BufferCalls(WaitingContract):
    """What an author provides, and entries made of token ids."""

    tensors: ClassVar[Tensors] = TorchTensors()

    def open_buffer(self, capacity_bytes: int) -> BufferEnds:
        """A new, empty buffer that holds at most so many bytes of tensors."""
        raise NotImplementedError("open_buffer() must return the two ends of a new buffer")

    def opened(self, entries: int, like: Sequence[int]) -> Iterator[BufferEnds]:
        """A buffer with room for so many entries, closed afterwards without waiting for it."""
        size = entries * sum(map(self.tensors.size, self.entry(like)))
        ends = self.promptly("open_buffer()", lambda: self.open_buffer(size))
        yield ends
        Call(ends.consumer.close)
        Call(ends.producer.close)

    def entry(self, tokens: Sequence[int]) -> list[Any]:
        """Tokens, a full region of interest, and key, value and hidden that depend on them."""
        make, count = self.tensors.make, len(tokens)
        roi = self.tensors.mask([True] * count)
        kv = [make([t * 0.5 + n for t in tokens], [1, count], "float32") for n in range(3)]
        return [self.tokens(tokens), roi, *kv]

    def tokens(self, tokens: Sequence[int]) -> Any:
        """A tensor of token ids."""
        return self.tensors.make(list(tokens), [len(tokens)], "int64")

    def insert(self, buffer: BufferEnds, tokens: Sequence[int]) -> None:
        """Inserts an entry, which must not wait."""
        what = f"insert({list(tokens)})"
        self.promptly(what, lambda: buffer.producer.insert(*self.entry(tokens)))

    def ask(
        self, buffer: BufferEnds, tokens: Sequence[int] | None, roi: Sequence[bool] | None = None
    ) -> list[Any]:
        """``drop_select``, for as long as it takes; None for the tokens asks for any entry."""
        if tokens is None:
            found: list[Any] = buffer.consumer.drop_select(None, None)
            return found
        mask = self.tensors.mask(roi or [True] * len(tokens))
        selected: list[Any] = buffer.consumer.drop_select(self.tokens(tokens), mask)
        return selected

    def select(
        self, buffer: BufferEnds, tokens: Sequence[int] | None, roi: Sequence[bool] | None = None
    ) -> list[Any]:
        """``drop_select``, which must not wait."""
        what = f"drop_select({None if tokens is None else list(tokens)})"
        return self.promptly(what, lambda: self.ask(buffer, tokens, roi))

    def must_be(self, got: list[Any], tokens: Sequence[int]) -> None:
        """An assertion fails unless this is the entry of these tokens."""
        assert self.tensors.same(got[0], self.tokens(tokens)), (
            f"asked for the entry of {list(tokens)}, got that of {got[0]}"
        )
