"""Requirement sets: frozen, complete, and told apart from what the catalogue became."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sample_profiles import profile

from conformance.errors import UsageError
from conformance.options import RunOptions
from conformance.profile_file import builtin_profiles
from conformance.registry import all_checks, plan
from conformance.requirement_sets import (
    FOLDER,
    RequirementSet,
    catalogue,
    differences,
    digest_of,
    frozen,
    latest,
    not_asked,
    required_cells,
    text_of,
)

NOW = catalogue()
PROFILES = builtin_profiles()


def kept() -> RequirementSet:
    found = latest()
    assert found is not None
    return found


def test_the_latest_committed_set_is_the_catalogue() -> None:
    changes = differences(kept(), NOW)
    assert not changes, (
        f"the catalogue of checks and {kept().name} differ: {'; '.join(changes)}. A published set "
        "is never edited: run python -m conformance.requirement_sets, which writes "
        f"core-{kept().version + 1}.json, and commit it"
    )


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.json")), ids=lambda file: file.stem)
def test_every_committed_set_is_as_it_was_written(file: Path) -> None:
    found = RequirementSet.model_validate_json(file.read_text(encoding="utf-8"))
    assert found.digest == digest_of(found.requirements)
    assert found.name == file.stem
    assert file.read_text(encoding="utf-8") == text_of(found)


def test_a_set_has_every_core_check_of_the_fast_model_and_no_other() -> None:
    named = {check.id for check in all_checks() if check.level == "core" and check.model == "fast"}
    cells = [one.cell for one in NOW]
    assert cells == sorted(set(cells))
    # A cell is its check's id, or that and a case.
    assert {
        next(name for name in named if f"{cell}/".startswith(f"{name}/")) for cell in cells
    } == (named)
    assert {one.level for one in NOW} == {"core"}


def test_what_is_required_of_a_connector_is_what_a_run_of_it_tries() -> None:
    for name in ("nixl", "mooncake", "multi-nixl-example"):
        tried = {
            cell.id
            for cell in plan(RunOptions(connectors=(name,), levels=("core",)), "cpu")
            if cell.check.model == "fast"
        }
        assert set(required_cells(kept(), PROFILES[name])) == tried


def test_checks_that_do_not_apply_are_named() -> None:
    assert "legs/at-once" in not_asked(kept(), profile())
    assert "legs/at-once" not in required_cells(kept(), profile())
    assert "legs/at-once" in required_cells(kept(), PROFILES["mooncake"])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"requirement": "It holds, more or less."}, "changed: length/B"),
        ({"level": "extended"}, "changed: length/B"),
        ({"conditional": True}, "changed: length/B"),
        ({"cell": "length/4B"}, "new: length/4B"),
    ],
)
def test_a_changed_requirement_changes_the_digest_and_is_named(
    change: dict[str, object], told: str
) -> None:
    changed = tuple(one.model_copy(update=change) if one.cell == "length/B" else one for one in NOW)
    assert digest_of(changed) != digest_of(NOW)
    assert told in differences(frozen(1, NOW), changed)


def test_a_check_that_is_gone_is_named() -> None:
    fewer = tuple(one for one in NOW if one.cell != "start/ready")
    assert differences(frozen(1, NOW), fewer) == ["gone: start/ready"]


def test_the_order_of_requirements_does_not_matter() -> None:
    assert digest_of(reversed(NOW)) == digest_of(NOW)


def test_the_highest_version_is_the_latest(tmp_path: Path) -> None:
    for version in (2, 10, 9):
        (tmp_path / f"core-{version}.json").write_text(text_of(frozen(version, NOW)))
    found = latest(tmp_path)
    assert found is not None
    assert found.version == 10
    assert latest(tmp_path / "empty") is None


def test_a_set_that_was_edited_is_refused(tmp_path: Path) -> None:
    document = json.loads(text_of(frozen(1, NOW)))
    document["requirements"] = document["requirements"][1:]
    file = tmp_path / "core-1.json"
    file.write_text(json.dumps(document))
    with pytest.raises(UsageError, match="a frozen set is never edited") as caught:
        latest(tmp_path)
    assert str(file) in str(caught.value)
