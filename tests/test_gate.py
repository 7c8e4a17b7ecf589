"""The gate: what stands on a failed foundation is not tried, and says so."""

from __future__ import annotations

import pytest

from conformance.errors import NotHere
from conformance.gate import FOUNDATION, Gate
from conformance.options import RunOptions
from conformance.registry import PlannedCell, plan
from conformance.verdict import Verdict

CELLS = plan(RunOptions(connectors=("nixl", "example"), real_model="none"), "cpu")
CLOSING = (Verdict.FAIL, Verdict.DEGRADED)


def cells(connector: str) -> list[PlannedCell]:
    return [cell for cell in CELLS if cell.profile.name == connector]


def foundation(connector: str) -> PlannedCell:
    return next(cell for cell in cells(connector) if cell.id == FOUNDATION)


def other(connector: str) -> PlannedCell:
    return next(cell for cell in cells(connector) if cell.id == "length/B")


def test_the_foundation_is_a_check_that_every_connector_has() -> None:
    assert foundation("nixl").check.shape == other("nixl").check.shape
    assert foundation("example")


@pytest.mark.parametrize("verdict", CLOSING)
def test_a_failed_foundation_closes_every_other_cell_of_its_connector(verdict: Verdict) -> None:
    gate = Gate(keep_going=False)
    gate.learn(foundation("nixl"), verdict)
    for cell in cells("nixl"):
        if cell.id == FOUNDATION:
            gate.must_be_open(cell)
            continue
        with pytest.raises(NotHere) as caught:
            gate.must_be_open(cell)
        assert f"{FOUNDATION} is {verdict}" in str(caught.value)
        assert "--keep-going" in str(caught.value)
    for cell in cells("example"):
        gate.must_be_open(cell)


@pytest.mark.parametrize("verdict", sorted(set(Verdict) - set(CLOSING)))
def test_no_other_verdict_of_the_foundation_closes_it(verdict: Verdict) -> None:
    gate = Gate(keep_going=False)
    gate.learn(foundation("nixl"), verdict)
    gate.must_be_open(other("nixl"))


@pytest.mark.parametrize("verdict", CLOSING)
def test_another_cell_that_fails_closes_nothing(verdict: Verdict) -> None:
    gate = Gate(keep_going=False)
    gate.learn(other("nixl"), verdict)
    for cell in cells("nixl"):
        gate.must_be_open(cell)


@pytest.mark.parametrize("verdict", CLOSING)
def test_who_wants_to_keep_going_may(verdict: Verdict) -> None:
    gate = Gate(keep_going=True)
    gate.learn(foundation("nixl"), verdict)
    for cell in cells("nixl"):
        gate.must_be_open(cell)
