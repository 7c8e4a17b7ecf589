"""The committed JSON Schemas are those of the models."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from conformance.profile_file import PROFILE_FOLDER
from conformance.schemas import COMMITTED, text_of


@pytest.mark.parametrize("file", COMMITTED, ids=lambda file: file.name)
def test_committed_schema_is_current(file: Path) -> None:
    assert file.read_text(encoding="utf-8") == text_of(COMMITTED[file]), (
        f"{file.name} is stale: run python -m conformance.schemas"
    )


@pytest.mark.parametrize("profile", sorted(PROFILE_FOLDER.glob("*.yaml")), ids=lambda p: p.stem)
def test_shipped_profiles_obey_the_schema(profile: Path) -> None:
    schema = json.loads((PROFILE_FOLDER / "profile.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(yaml.safe_load(profile.read_text(encoding="utf-8")), schema)
