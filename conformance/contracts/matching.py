"""Clauses about ``get_num_new_matched_tokens``: what a connector may claim to have."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.contracts.metadata import Quiet
from conformance.contracts.pair import Pair, prompt_of
from conformance.contracts.setting import LENGTH, Setting
from conformance.contracts.tiny_model import BLOCK_SIZE

# Around one and two blocks, and the shortest prompt there is.
LENGTHS = (
    1,
    BLOCK_SIZE - 1,
    BLOCK_SIZE,
    BLOCK_SIZE + 1,
    2 * BLOCK_SIZE,
    2 * BLOCK_SIZE + 1,
    LENGTH,
)


@dataclass(frozen=True)
class Claim:
    """One answer: of ``length`` prompt tokens ``computed`` are in decode's own cache."""

    length: int
    computed: int
    matched: int | None
    asynchronous: bool

    def __str__(self) -> str:
        kind = "asynchronously" if self.asynchronous else "synchronously"
        return (
            f"prompt of {self.length} tokens, {self.computed} computed: {self.matched} more {kind}"
        )


class Matching(Setting):
    """vLLM 0.32.0: ``Scheduler.schedule`` in v1/core/sched/scheduler.py, waiting requests."""

    def test_unknown_prompt_matches_nothing(self, pair: Pair) -> None:
        """A prompt that nobody saved matches no token."""
        request = pair.decode.request("unknown", prompt_of(LENGTH))
        matched, asynchronous = pair.decode.scheduler.connector.get_num_new_matched_tokens(
            request, 0
        )
        assert not matched, str(Claim(LENGTH, 0, matched, asynchronous))

    def test_match_count_is_never_negative(self, pair: Pair) -> None:
        """The number of matched tokens is never negative, however short the prompt and however
        much of it decode has computed itself."""
        wrong = [str(c) for c in self.claims(pair) if c.matched is not None and c.matched < 0]
        assert not wrong, "; ".join(wrong)

    def test_match_count_leaves_the_last_token(self, pair: Pair) -> None:
        """Loaded synchronously, the last prompt token is never covered, since the scheduler has
        to compute at least one; loaded asynchronously, no token beyond the prompt is."""
        claims = self.claims(pair)
        assert any(c.matched for c in claims), "no saved prompt was matched at all"
        wrong = [
            str(c)
            for c in claims
            if c.matched and c.computed + c.matched > c.length - (0 if c.asynchronous else 1)
        ]
        assert not wrong, "; ".join(wrong)

    def test_zero_matches_are_never_asynchronous(self, pair: Pair) -> None:
        """If no token is matched, the second element of the answer is False."""
        wrong = [str(c) for c in self.claims(pair) if c.asynchronous and not c.matched]
        assert not wrong, "; ".join(wrong)

    def test_asking_changes_nothing(self, pair: Pair) -> None:
        """Asking again gives the same answer, and asking alone leaves nothing in the metadata."""
        connector = pair.decode.scheduler.connector
        quiet = Quiet(pair.decode)
        request = pair.find(pair.save(LENGTH, self.prefill_params))
        answers = [connector.get_num_new_matched_tokens(request, 0) for _ in range(3)]
        assert answers.count(answers[0]) == len(answers), f"the answers were {answers}"
        kept = quiet.filled()
        assert not kept, f"a request that was only asked about fills {', '.join(kept)}"

    def claims(self, pair: Pair) -> list[Claim]:
        """The answers for saved prompts of all :data:`LENGTHS` and every local hit possible."""
        connector = pair.decode.scheduler.connector
        found = []
        for length in LENGTHS:
            request = pair.ask(pair.save(length, self.prefill_params))
            for computed in range(0, length, BLOCK_SIZE):
                answer = connector.get_num_new_matched_tokens(request, computed)
                found.append(Claim(length, computed, answer[0], bool(answer[1])))
        return found
