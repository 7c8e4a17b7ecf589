"""What all contracts share: clauses, and what an implementation says it cannot do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import pytest

DECLARED = "cannot: "


class Contract:
    """Base of the contract classes. One test method is one clause, its docstring the requirement.

    ``cannot`` maps a clause (its method name without ``test_``) to the reason why the
    implementation cannot meet it; ``untried`` to the reason why it could not be tried on it. Such
    a clause is skipped and shown with that reason.
    """

    cannot: ClassVar[Mapping[str, str]] = {}
    untried: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def clauses(cls) -> list[str]:
        """The ids of all clauses."""
        return sorted(name.removeprefix("test_") for name in dir(cls) if name.startswith("test_"))

    @pytest.fixture(autouse=True)
    def _declared(self, request: pytest.FixtureRequest) -> None:
        unknown = sorted({*self.cannot, *self.untried} - set(self.clauses()))
        assert not unknown, (
            f"{type(self).__name__}: no such clause: {', '.join(unknown)}; in `cannot` and "
            f"`untried` use names from: {', '.join(self.clauses())}"
        )
        clause = request.node.originalname.removeprefix("test_")
        if clause in self.cannot:
            pytest.skip(DECLARED + self.cannot[clause])
        if clause in self.untried:
            pytest.skip(self.untried[clause])
