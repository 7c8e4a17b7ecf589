"""Every assumption is seen to fail, and it alone, on a server that breaks it."""

from __future__ import annotations

from pathlib import Path

import pytest
from assumption_faults import FAULTS
from doctored import Doctor, plain

from conformance import developer, metrics
from conformance.assumptions import trial
from conformance.assumptions.assumption import all_assumptions
from conformance.report_parts import AssumptionResult

# All assumptions on a server for each of them: not among the tests that take under a minute.
pytestmark = pytest.mark.whole_run


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripted servers count fast; what never comes is waited for as on a busy machine."""
    monkeypatch.setattr(metrics, "SETTLE_POLL_S", 0.002)
    monkeypatch.setattr(metrics, "SETTLE_LIMIT_S", 2.0)
    monkeypatch.setattr(trial, "SETTLE_S", 2.0)
    monkeypatch.setattr(developer, "POLL_S", 0.002)
    for limit in ("RESET_LIMIT_S", "PAUSE_LIMIT_S", "FREE_LIMIT_S"):
        monkeypatch.setattr(developer, limit, 2.0)


def tried(doctor: Doctor, folder: Path, *, ours: bool = True) -> list[AssumptionResult]:
    with plain(doctor, folder, ours=ours) as server:
        return trial.try_all(server, intrusive=ours)


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> list[AssumptionResult]:
    return tried(Doctor(), tmp_path_factory.mktemp("healthy"))


def test_the_scripted_server_does_all_that_is_taken_for_granted(
    healthy: list[AssumptionResult],
) -> None:
    assert {found.id: found.seen for found in healthy if found.held is not True} == {}
    assert [found.id for found in healthy] == [known.id for known in all_assumptions()]


def test_every_assumption_has_a_fault() -> None:
    assert set(FAULTS) == {known.id for known in all_assumptions()}


@pytest.mark.parametrize("id", FAULTS)
def test_each_is_seen_to_fail_and_it_alone(id: str, tmp_path: Path) -> None:
    results = tried(FAULTS[id], tmp_path)
    assert {found.id: found.seen for found in trial.broken(results)}.keys() == {id}
    rest = {found.id: found.seen for found in results if found.held is None}
    assert all(seen.startswith("it rests on ") for seen in rest.values()), rest
    assert trial.words(results, "0.33.0").startswith(
        f"vLLM 0.33.0 does not do what the suite takes for granted: {id}: "
    )
