"""Deployments that do not start: how often each is tried, and what is said the next time."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from sample_profiles import profile

from conformance.clock import RunClock
from conformance.crashes import CrashLedger
from conformance.errors import EnvironmentProblem, ServerStartError, SuiteError
from conformance.fleet import Fleet
from conformance.models import Model
from conformance.options import RunOptions
from conformance.profile import Profile
from conformance.serving.deployment import PAIR, TRIAL, Deployment, Key, Shape
from conformance.serving.launcher import Launcher

MINE, OTHER = profile(name="mine"), profile(name="other")
TWO_BY_TWO = Shape("2P2D", 2, 2)


class Scripted:
    """A launcher whose starts end as told; without a problem, in a deployment of no servers."""

    def __init__(self, problem: SuiteError | None) -> None:
        self.problem = problem
        self.launched: list[tuple[str, Shape, bool]] = []
        self.stopped = 0

    def model(self, name: str) -> Model:
        return Model(name, name, "auto")

    def launch(
        self, model: Model, asked: Profile, shape: Shape, *, and_reference: bool
    ) -> tuple[Deployment, None]:
        self.launched.append((asked.name, shape, and_reference))
        if self.problem:
            raise self.problem
        made = Deployment(Key(asked.name, model.name, shape))
        made.stop = self._stop  # type: ignore[method-assign]
        return made, None

    def launch_reference(self, model: Model, shape: Shape) -> Deployment:
        self.launched.append(("reference", shape, False))
        assert self.problem is not None
        raise self.problem

    def _stop(self) -> None:
        self.stopped += 1


def fleet(folder: Path, launcher: Scripted) -> Fleet:
    ledger = CrashLedger(folder / "crashes.json")
    options = RunOptions(report=folder)
    return Fleet(options, cast("Launcher", cast("Any", launcher)), RunClock(), ledger)


def refused(made: Fleet, asked: Profile = MINE, shape: Shape = PAIR) -> SuiteError:
    with pytest.raises(SuiteError) as caught:
        made.pairs(asked, "tiny", shape)
    return caught.value


@pytest.mark.parametrize(
    "problem",
    [
        ServerStartError("died", "boom", blames_connector=True),
        ServerStartError("port taken", "address already in use"),
        EnvironmentProblem("no free port"),
        SuiteError("all answers alike"),
    ],
    ids=str,
)
def test_a_pair_that_was_never_ready_is_tried_once_and_its_error_repeated(
    tmp_path: Path, problem: SuiteError
) -> None:
    launcher = Scripted(problem)
    made = fleet(tmp_path, launcher)
    assert [refused(made) for _ in range(3)] == [problem] * 3
    assert launcher.launched == [("mine", PAIR, True)]
    assert not made.was_up(MINE, "tiny")


def test_another_connector_and_another_shape_are_tried_on_their_own(tmp_path: Path) -> None:
    launcher = Scripted(ServerStartError("died", "boom"))
    made = fleet(tmp_path, launcher)
    for asked, shape in ((MINE, PAIR), (OTHER, PAIR), (MINE, TWO_BY_TWO), (MINE, PAIR)):
        refused(made, asked, shape)
    assert [start[:2] for start in launcher.launched] == [
        ("mine", PAIR),
        ("other", PAIR),
        ("mine", TWO_BY_TWO),
    ]


def test_a_trial_is_one_prefill_server_without_reference_and_is_stopped(tmp_path: Path) -> None:
    launcher = Scripted(None)
    fleet(tmp_path, launcher).trial(MINE, "tiny")
    assert launcher.launched == [("mine", TRIAL, False)]
    assert (TRIAL.prefills, TRIAL.decodes) == (1, 0)
    assert launcher.stopped == 1


def test_a_failed_trial_is_not_repeated(tmp_path: Path) -> None:
    problem = ServerStartError("refused", "only supported on CUDA", blames_connector=True)
    launcher = Scripted(problem)
    made = fleet(tmp_path, launcher)
    for _ in range(3):
        with pytest.raises(ServerStartError) as caught:
            made.trial(MINE, "tiny")
        assert caught.value is problem
    assert launcher.launched == [("mine", TRIAL, False)]


def test_what_no_server_can_serve_is_not_tried_for_another_connector(tmp_path: Path) -> None:
    problem = ServerStartError("died", "no such dtype", blames_connector=True)
    launcher = Scripted(problem)
    made = fleet(tmp_path, launcher)
    refused(made)
    for _ in range(2):
        with pytest.raises(ServerStartError):
            made.reference("tiny", PAIR)
    assert refused(made, OTHER) is problem
    assert [start[0] for start in launcher.launched] == ["mine", "reference"]


def test_a_connector_whose_ordinary_servers_never_started_is_known(tmp_path: Path) -> None:
    problem = ServerStartError("died", "boom", blames_connector=True)
    made = fleet(tmp_path, Scripted(problem))
    assert made.refused_before(MINE, "tiny") is None
    refused(made, shape=TWO_BY_TWO)
    assert made.refused_before(MINE, "tiny") is None, "another shape says nothing of the ordinary"
    refused(made)
    assert made.refused_before(MINE, "tiny") is problem
    assert made.refused_before(MINE, "another") is None
    assert made.refused_before(OTHER, "tiny") is None
