"""Clauses about who frees a finished request's blocks."""

from __future__ import annotations

from conformance.contracts.instance import Instance
from conformance.contracts.pair import Pair
from conformance.contracts.setting import LENGTH, Setting

MORE_STEPS = 3


class Release(Setting):
    """vLLM 0.32.0: ``request_finished``, ``get_finished`` and ``Scheduler._free_request``."""

    def test_promised_release_is_reported_exactly_once(self, pair: Pair) -> None:
        """A request for which request_finished() kept the blocks is reported exactly once by
        get_finished() as sent, and only after it was named to it; no other request ever is."""
        pair.load(pair.save(LENGTH, self.prefill_params))
        sides = {"prefill": pair.prefill, "decode": pair.decode}
        pair.until(lambda: all(_promised(side) <= {*side.journal.sent} for side in sides.values()))
        for _ in range(MORE_STEPS):
            pair.step()
        for name, side in sides.items():
            _judge_release(name, side)


def _judge_release(name: str, side: Instance) -> None:
    sent, kept = side.journal.sent, _promised(side)
    never = sorted(kept - {*sent})
    assert not never, f"{name}: kept the blocks of {never}, but never reported them as sent"
    unasked = sorted(({*sent} - kept) | side.journal.sent_unasked)
    assert not unasked, f"{name}: reported {unasked} as sent, which nobody was waiting for"
    again = {request: count for request, count in sent.items() if count > 1}
    assert not again, f"{name}: reported more than once: {again}"


def _promised(side: Instance) -> set[str]:
    return {request for request, kept in side.journal.promised.items() if kept}
