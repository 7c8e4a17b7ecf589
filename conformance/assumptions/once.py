"""Once in a run: on the first ordinary reference that is up, before any check is tried."""

from __future__ import annotations

from collections.abc import Collection

from conformance.assumptions.plain import Plain
from conformance.assumptions.trial import AssumptionsBroken, try_all, words
from conformance.client import Client
from conformance.errors import NotHere
from conformance.prompts import Prompts
from conformance.report_parts import AssumptionResult
from conformance.serving.deployment import Extra, ReferenceKey

INSTEAD = "; the checks can be tried all the same with --keep-going"


class Once:
    """What came of the assumptions in this process.

    ``models``: those of a run; a check's own may be of an architecture that caches otherwise, and
    a reference that is started otherwise may answer otherwise. ``keep_going``: what does not hold
    is recorded, and ends nothing.
    """

    def __init__(self, version: str, models: Collection[str], *, keep_going: bool) -> None:
        self._version = version
        self._models = models
        self._keep_going = keep_going
        self._results: list[AssumptionResult] = []
        self._taken = False
        self._words = ""

    def must_hold(self, client: Client, prompts: Prompts, key: ReferenceKey) -> None:
        """On a reference of ours. Raises :class:`AssumptionsBroken`."""
        if key[0] in self._models and key[1] == Extra():
            self._must_hold(Plain(client, prompts))

    def must_hold_elsewhere(self, client: Client, prompts: Prompts) -> None:
        """On one that somebody else started, and may be using. Raises as above."""
        self._must_hold(Plain(client, prompts, ours=False, started=False))

    def must_not_be_broken(self) -> None:
        """Raises :class:`NotHere` for whatever comes after one was found not to hold."""
        if self._words:
            raise NotHere(f"not tried: {self._words}")

    def take(self) -> list[AssumptionResult]:
        """The results, the first time they are there to be taken; else none."""
        if self._taken or not self._results:
            return []
        self._taken = True
        return self._results

    def _must_hold(self, plain: Plain) -> None:
        if self._results:
            return
        self._results = try_all(plain, intrusive=plain.ours)
        found = words(self._results, self._version)
        if found and not self._keep_going:
            self._words = found
            raise AssumptionsBroken(found + INSTEAD)
