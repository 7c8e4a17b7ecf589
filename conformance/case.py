"""What a check is given: a running pair, prompts of its own, and a place for evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from conformance.errors import ServerStartError
from conformance.evidence import Evidence, Fact, Proof
from conformance.ladder import Climbed, climb
from conformance.pair import Ask, Pair
from conformance.registry import PlannedCell


@dataclass
class Case:
    """One cell while it is being tried.

    ``start``: starts and stops one server, for a check whose shape has no pair; returns the error
    if it does not become ready.
    """

    cell: PlannedCell
    pairs: list[Pair]
    start: Callable[[], ServerStartError | None] = field(kw_only=True)
    evidence: Evidence = field(default_factory=Evidence)

    @property
    def pair(self) -> Pair:
        """The pair of the first prefill and the first decode instance."""
        return self.pairs[0]

    @property
    def name(self) -> str:
        """The case within the check; empty for a check without cases."""
        return self.cell.case

    @property
    def block(self) -> int:
        """Tokens per KV block, as read from decode."""
        return self.pair.block_size

    def ids(self, length: int, *key: object) -> list[int]:
        """Prompt token ids that no other cell uses."""
        return self.pair.prompts.tokens(length, self.cell.id, *key)

    def text(self, words: int, *key: object) -> str:
        """Prompt text that no other cell uses."""
        return self.pair.prompts.text(words, self.cell.id, *key)

    def prove(self, ask: Ask, pair: Pair | None = None) -> Climbed:
        """Climb the whole ladder for a request; the steps are evidence of this cell."""
        proof = Proof(subject=ask.subject)
        self.evidence.proofs.append(proof)
        return climb(pair or self.pair, ask, proof)

    def saw(self, what: str, seen: Any) -> None:
        """Record an observation that the check asserts on."""
        self.evidence.facts.append(Fact(what=what, seen=seen))
