"""What is not worth trying: features of a connector that does not transfer at all.

A decode instance that recomputes every prompt answers every other check rightly and slowly
(LMCacheConnectorV1 on a CPU: ten seconds a request), and each would only say so again.
"""

from __future__ import annotations

from conformance.errors import NotHere
from conformance.registry import FOUNDATION, PlannedCell
from conformance.verdict import Verdict

_CLOSING = {Verdict.FAIL, Verdict.DEGRADED}


class Gate:
    """Closed for a connector whose foundation check failed; ``keep_going`` leaves it open."""

    def __init__(self, *, keep_going: bool) -> None:
        self._keep_going = keep_going
        self._closed: dict[str, str] = {}

    def must_be_open(self, cell: PlannedCell) -> None:
        """Raises :class:`NotHere` for a cell that would stand on a failed foundation."""
        why = self._closed.get(cell.profile.name)
        if why and cell.id != FOUNDATION:
            raise NotHere(f"not tried, since {FOUNDATION} {why}; --keep-going tries it anyway")

    def learn(self, cell: PlannedCell, verdict: Verdict) -> None:
        """Note how a cell ended."""
        if cell.id == FOUNDATION and verdict in _CLOSING and not self._keep_going:
            self._closed[cell.profile.name] = f"is {verdict}"
