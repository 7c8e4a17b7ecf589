"""The contract of a KV lookup buffer: ``KVLookupBufferBase``, in vLLM up to 0.12.

``insert`` files KV under (input_tokens, roi), ``drop_select`` takes it out again. Needs no vLLM;
torch only for the default tensors.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.contracts.buffer_calls import PARTS, BufferCalls, BufferEnds

TOKENS = tuple(range(40, 48))
OTHER = tuple(range(70, 78))
THIRD = tuple(range(90, 98))


class LookupBufferContract(BufferCalls):
    """Subclass it and say in :meth:`open_buffer` how a buffer of a given size is made."""

    @pytest.fixture
    def buffer(self) -> Iterator[BufferEnds]:
        """A buffer with room for three entries."""
        yield from self.opened(3, TOKENS)

    @pytest.fixture
    def small_buffer(self) -> Iterator[BufferEnds]:
        """A buffer with room for two entries."""
        yield from self.opened(2, TOKENS)

    def test_insert_does_not_wait(self, buffer: BufferEnds) -> None:
        """insert() returns while there is room, whether or not anybody selects."""
        for tokens in (TOKENS, OTHER, THIRD):
            self.insert(buffer, tokens)

    def test_selection_is_what_was_inserted(self, buffer: BufferEnds) -> None:
        """drop_select() returns tokens, roi, key, value and hidden as they were inserted."""
        self.insert(buffer, TOKENS)
        got = self.select(buffer, TOKENS)
        wanted = self.entry(TOKENS)
        assert len(got) == len(wanted), f"{len(got)} parts came out, not {len(wanted)}"
        wrong = [
            name
            for name, a, b in zip(PARTS, wanted, got, strict=True)
            if b is None or not self.tensors.same(a, b)
        ]
        assert not wrong, f"not as inserted: {', '.join(wrong)}"

    def test_selection_waits_for_a_match(self, buffer: BufferEnds) -> None:
        """drop_select() waits while nothing matches, and returns once a match is inserted."""
        self.insert(buffer, OTHER)
        waiting = self.waiting(
            lambda: self.ask(buffer, TOKENS), "drop_select()", "only another prompt was inserted"
        )
        self.insert(buffer, TOKENS)
        self.must_be(self.value(waiting, "drop_select()"), TOKENS)

    def test_selection_removes_the_entry(self, buffer: BufferEnds) -> None:
        """What was selected is gone: the same selection waits until it is inserted again."""
        self.insert(buffer, TOKENS)
        self.must_be(self.select(buffer, TOKENS), TOKENS)
        waiting = self.waiting(
            lambda: self.ask(buffer, TOKENS),
            "a second drop_select()",
            "the only entry was already taken",
        )
        self.insert(buffer, TOKENS)
        self.must_be(self.value(waiting, "drop_select()"), TOKENS)

    def test_selection_takes_the_matching_entry(self, buffer: BufferEnds) -> None:
        """Of several entries drop_select() takes the one whose tokens were asked for."""
        for tokens in (TOKENS, OTHER, THIRD):
            self.insert(buffer, tokens)
        for tokens in (OTHER, THIRD, TOKENS):
            self.must_be(self.select(buffer, tokens), tokens)

    def test_prefix_within_roi_matches(self, buffer: BufferEnds) -> None:
        """Tokens outside the region of interest do not count, and a common prefix of those
        inside is a match."""
        self.insert(buffer, OTHER)
        self.insert(buffer, TOKENS)
        asked, roi = (*TOKENS[:4], 9999), (True, True, True, True, False)
        self.must_be(self.select(buffer, asked, roi), TOKENS)

    def test_close_token_ids_are_told_apart(self, buffer: BufferEnds) -> None:
        """Prompts that differ in one large token id by one are different prompts."""
        one, other = (128000, 128001, 128002), (128000, 128001, 128003)
        self.insert(buffer, one)
        waiting = self.waiting(
            lambda: self.ask(buffer, other),
            f"drop_select({list(other)})",
            f"only {list(one)} was inserted",
        )
        self.insert(buffer, other)
        self.must_be(self.value(waiting, "drop_select()"), other)

    def test_none_selects_any(self, buffer: BufferEnds) -> None:
        """drop_select(None, None) takes any entry, and each only once."""
        for tokens in (TOKENS, OTHER):
            self.insert(buffer, tokens)
        taken = [self.select(buffer, None)[0] for _ in range(2)]
        for tokens in (TOKENS, OTHER):
            found = [t for t in taken if self.tensors.same(t, self.tokens(tokens))]
            assert len(found) == 1, f"the entry of {list(tokens)} came out {len(found)} times"

    def test_full_buffer_makes_insert_wait(self, small_buffer: BufferEnds) -> None:
        """insert() into a full buffer waits until a selection has made room."""
        self.insert(small_buffer, TOKENS)
        self.insert(small_buffer, OTHER)
        waiting = self.waiting(
            lambda: small_buffer.producer.insert(*self.entry(THIRD)),
            "insert()",
            "the buffer is full",
        )
        self.must_be(self.select(small_buffer, TOKENS), TOKENS)
        self.value(waiting, "insert() after room was made")
        self.must_be(self.select(small_buffer, THIRD), THIRD)

    def test_close_returns(self, buffer: BufferEnds) -> None:
        """close() returns on both ends."""
        self.insert(buffer, TOKENS)
        self.must_be(self.select(buffer, TOKENS), TOKENS)
        self.promptly("close() of the consumer", buffer.consumer.close)
        self.promptly("close() of the producer", buffer.producer.close)
