"""Checks and the plan: each a requirement with a stable id, each deployment started once."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import groupby

import pytest

from conformance import registry
from conformance.errors import UsageError
from conformance.features import BY_ID
from conformance.models import recipes
from conformance.options import RunOptions
from conformance.profile import Profile
from conformance.profile_file import builtin_profiles
from conformance.registry import KINDS, PlannedCell, all_checks, check, plan
from conformance.serving.deployment import PAIR, Shape
from conformance.variants import VARIANTS

CHECKS = all_checks()
PROFILES = builtin_profiles()
NIXL = PROFILES["nixl"]
REAL = {found.id for found in CHECKS if found.model == "real"}


def planned(device: str = "cpu", **options: object) -> list[PlannedCell]:
    return plan(RunOptions.model_validate(options), device)


def ids(cells: list[PlannedCell]) -> set[str]:
    return {cell.id for cell in cells}


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_cell_ids_are_unique_and_can_be_asked_for(profile: Profile) -> None:
    found = [name for one in CHECKS for name in one.cell_ids(profile)]
    assert len(found) == len(set(found)) > 30
    assert not [name for name in found if re.search(r"[*?\[\]'\n]", name)]


@pytest.mark.parametrize("found", CHECKS, ids=lambda found: found.id)
def test_every_check_states_its_requirement(found: registry.Check) -> None:
    assert found.feature in BY_ID
    assert found.level in ("core", "extended", "provisional")
    assert found.model in KINDS or found.model in recipes()
    assert not found.variant or found.variant in VARIANTS
    assert found.requirement[0].isupper()
    assert found.requirement.endswith(".")
    assert "\n" not in found.requirement


def test_every_feature_has_a_check_and_checks_come_in_the_order_of_features() -> None:
    features = [feature for feature, _ in groupby(found.feature for found in CHECKS)]
    assert features == list(BY_ID)


def test_a_check_without_a_requirement_or_of_no_feature_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry, "_CHECKS", {})

    def silent(case: object) -> None: ...

    def lost(case: object) -> None:
        """It holds."""

    with pytest.raises(TypeError, match="check a needs a docstring"):
        check("a", feature="streaming")(silent)
    with pytest.raises(TypeError, match="feature 'teleport' is not in features"):
        check("b", feature="teleport")(lost)


def test_the_first_paragraph_is_the_requirement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_CHECKS", {})

    @check("a", feature="streaming", level="extended", cases=("x", "y"))
    def test_it(case: object) -> None:
        """A streamed answer
        is whole.

        Why: it was not once.
        """

    made = registry._CHECKS["a"]
    assert made.requirement == "A streamed answer is whole."
    assert (made.level, made.model, made.cell_ids(NIXL)) == ("extended", "fast", ["a/x", "a/y"])
    assert test_it.kv_check is made  # type: ignore[attr-defined]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_each_deployment_is_started_once(device: str) -> None:
    cells = planned(device, real_model="all", connectors=["nixl", "example"])
    deployments = [name for name, _ in groupby(cell.deployment for cell in cells)]
    needed = {(cell.profile.name, cell.model, cell.check.shape) for cell in cells}
    assert len(deployments) == len(set(deployments)) == len(needed)
    ordinary = {
        (cell.profile.name, cell.model)
        for cell in cells
        if cell.check.shape == PAIR and not cell.check.own_model
    }
    assert len(ordinary) == (4 if device == "cpu" else 2)
    models = [model for model, _ in groupby(cell.model for cell in cells)]
    assert len(models) == len(set(models))


def test_the_ordinary_pair_of_a_connector_comes_before_its_topologies() -> None:
    cells = planned(real_model="none", connectors=["nixl"])
    shapes = [shape.label for shape, _ in groupby(cell.check.shape for cell in cells)]
    assert shapes[0] == ""
    assert {"2P2D", "P64-D128"} < set(shapes)


def test_fast_deployments_come_first_and_share_a_reference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    backwards = {
        found.id: found for found in sorted(CHECKS, key=lambda found: found.id not in REAL)
    }
    monkeypatch.setattr(registry, "_CHECKS", backwards)
    cells = planned(real_model="all", connectors=["nixl", "example"], features=["basic-transfer"])
    kinds = [kind for kind, _ in groupby((cell.model, cell.profile.name) for cell in cells)]
    fast, real = "tiny-llama", "smollm2-135m-instruct"
    assert kinds == [(fast, "nixl"), (fast, "example"), (real, "nixl"), (real, "example")]


def test_models_that_single_checks_are_about_come_last_and_share_a_reference() -> None:
    cells = planned(real_model="all", connectors=["nixl", "example"])
    shared = {cell.model for cell in cells if not cell.check.own_model}
    own = [cell.model not in shared for cell in cells]
    assert own == sorted(own)
    moe = [cell for cell in cells if cell.model == "tiny-qwen3-moe"]
    assert [cell.profile.name for cell in moe] == ["nixl", "example"]
    assert cells.index(moe[1]) == cells.index(moe[0]) + 1


def test_no_model_asked_for_replaces_one_that_a_check_is_about() -> None:
    given = {"model": "some/model", "real_model": "none", "connectors": ["nixl"]}
    assert {cell.model for cell in planned(**given)} == {"some/model"}
    for asked in ({"features": ["architectures"]}, {"checks": ["architecture/moe"]}):
        models = {cell.id: cell.model for cell in planned(**given, **asked)}
        assert models["architecture/moe"] == "tiny-qwen3-moe"
        assert models.get("engine/fp8-kv-cache", "some/model") == "some/model"


def test_every_case_on_every_connector_is_one_cell() -> None:
    cells = planned(real_model="all", connectors=["nixl", "example"])
    for connector in ("nixl", "example"):
        profile = PROFILES[connector]
        applied = [found for found in CHECKS if found.applies(profile)]
        everything = {name for found in applied for name in found.cell_ids(profile)}
        mine = [cell.id for cell in cells if cell.profile.name == connector]
        assert len(mine) == len(everything)
        assert set(mine) == everything


def test_real_model_checks_run_where_asked_for() -> None:
    both = {"connectors": ["nixl", "example"]}
    assert not ids(planned(real_model="none", **both)) & REAL
    auto = planned(real_model="auto", **both)
    assert {cell.profile.name for cell in auto if cell.id in REAL} == {"nixl"}
    every = planned(real_model="all", **both)
    assert {cell.profile.name for cell in every if cell.id in REAL} == {"nixl", "example"}


def test_a_feature_selects_its_checks() -> None:
    cells = planned(features=["streaming", "shared-prefix"], connectors=["nixl"])
    assert {cell.check.feature for cell in cells} == {"streaming", "shared-prefix"}


def test_a_pattern_selects_checks_or_single_cells() -> None:
    nixl = {"connectors": ["nixl"], "real_model": "all"}
    lengths = next(found for found in CHECKS if found.feature == "prompt-length")
    assert ids(planned(checks=[lengths.id], **nixl)) == set(lengths.cell_ids(NIXL))
    assert ids(planned(checks=["transfer/*"], **nixl)) == {
        *("transfer/completion", "transfer/chat", "transfer/nothing-held", "transfer/in-time")
    }
    one = lengths.cell_ids(NIXL)[0]
    assert ids(planned(checks=[one, "transfer/chat"], **nixl)) == {one, "transfer/chat"}


@pytest.mark.parametrize("pattern", ["transfer/comletion", "nothing/*", ""])
def test_a_pattern_that_matches_nothing_is_refused(pattern: str) -> None:
    with pytest.raises(UsageError) as caught:
        planned(checks=["transfer/*", pattern])
    assert f"--check {pattern!r} is unknown" in str(caught.value)
    assert ("did you mean 'transfer/completion'?" in str(caught.value)) == ("com" in pattern)


def test_deployments_of_every_connector_that_share_a_reference_follow_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shapes = {
        "plain": PAIR,
        "sides": Shape("sides", decode_args=("--y",)),
        "late": Shape("a", args=("--z",)),
        "own": Shape("b", args=("--x",)),
        "own-too": Shape("c", args=("--x",), decode_args=("--y",)),
    }
    monkeypatch.setattr(registry, "_CHECKS", {})
    for name, shape in shapes.items():

        def holds(case: object) -> None:
            """It holds."""

        check(name, feature="streaming", shape=shape)(holds)
    cells = planned(connectors=["nixl", "example"])
    references = [key for key, _ in groupby(cell.key.reference for cell in cells)]
    assert len(references) == len(set(references)) == 3
    assert [(cell.profile.name, cell.check.id) for cell in cells] == [
        *(("nixl", "plain"), ("nixl", "sides"), ("example", "plain"), ("example", "sides")),
        *(("nixl", "own"), ("nixl", "own-too"), ("example", "own"), ("example", "own-too")),
        *(("nixl", "late"), ("example", "late")),
    ]


def test_of_a_core_check_only_the_named_cases_are_core() -> None:
    made = replace(
        next(one for one in CHECKS if one.id == "length"), cases=("a", "b"), core_cases=("b",)
    )
    assert [made.level_of(case) for case in made.cases] == ["extended", "core"]
    assert replace(made, core_cases=()).level_of("a") == "core"
    assert replace(made, level="provisional").level_of("a") == "provisional"


def test_a_level_chooses_cells() -> None:
    everything = plan(RunOptions(connectors=("nixl",)), "cpu")
    for level in ("core", "extended"):
        chosen = plan(RunOptions(connectors=("nixl",), levels=(level,)), "cpu")
        assert [c.id for c in chosen] == [c.id for c in everything if c.level == level]
        assert chosen


def test_an_unknown_level_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="--level 'croe' is unknown; did you mean 'core'"):
        RunOptions.of(levels=["croe"])
