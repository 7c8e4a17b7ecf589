"""The committed files of known failures: well-formed, and in step with the published results."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from conformance.expectations import Facts, Place
from conformance.expectations_file import load_expectations
from conformance.expectations_ruling import Scope, rule
from conformance.expectations_scope import known_places
from conformance.options import RunOptions
from conformance.report import Cell
from conformance.report_parts import EntryState
from conformance.verdict import FAILURES, Verdict

REPORTS = Path(__file__).parent.parent / "reports"
FILES = sorted((REPORTS / "expectations").glob("*.yaml"))
CPU_FILE = REPORTS / "expectations" / "vllm-0.32.0-cpu.yaml"
PUBLISHED = REPORTS / "published" / "2026-12-01-vllm-cpu-0.32.0" / "matrix.json"
DAY = date(2026, 12, 1)


@pytest.fixture(scope="module")
def published() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def cells(published: dict[str, Any]) -> list[tuple[str, Cell]]:
    """The connector and the cell of every result."""
    return [
        (cell["connector"], Cell.model_validate(result["cell"]))
        for cell in published["cells"]
        for result in cell["checks"]
    ]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_committed_file_can_be_used_and_obeys_the_schema(file: Path) -> None:
    known = known_places(RunOptions())
    for entry in load_expectations(file).entries:
        assert entry.covered(known), f"{file.name}:{entry.line} is about no known check"
        assert entry.when, f"{file.name}:{entry.line} does not say where it was seen"
    schema = json.loads((REPORTS / "expectations.schema.json").read_text(encoding="utf-8"))
    # JSON has no dates.
    text = json.dumps(yaml.safe_load(file.read_text(encoding="utf-8")), default=str)
    jsonschema.validate(json.loads(text), schema)


def test_the_file_says_what_the_published_results_say(
    published: dict[str, Any], cells: list[tuple[str, Cell]]
) -> None:
    known = known_places(RunOptions())
    ids = {place.cell: place.check for place in known}
    places = [Place(name, ids.get(cell.check, cell.check), cell.check) for name, cell in cells]
    engine, packages = published["runs"][0]["engine"], published["runs"][0]["packages"]
    facts = Facts.of(engine["device"], engine["distribution"], engine["version"], packages)
    # An entry on a check that is newer than the results says nothing of them.
    scope = Scope(places, [], {*places, *known})
    ruling = rule(load_expectations(CPU_FILE), scope, lambda _: facts, DAY)
    assert ruling.result is not None
    assert {entry.state for entry in ruling.result.entries} == {EntryState.UNTRIED}
    applied = {name for entry in ruling.result.entries for name in entry.cells}
    failed = {f"{name}/{cell.check}" for name, cell in cells if cell.verdict in FAILURES}
    assert applied == failed
    for name, cell in cells:
        before = cell.verdict
        ruling.settle(name, cell)
        excused = before in FAILURES
        assert cell.verdict is (Verdict.XFAIL if excused else before), (name, cell.check)


def test_it_holds_where_it_was_seen_and_nowhere_else() -> None:
    entries = load_expectations(CPU_FILE).entries
    nixl = {"nixl": "1.5.1", "lmcache": "0.5.6"}
    for device, version, holds in (
        ("cpu", "0.32.0", True),
        ("cpu", "0.32.1", True),
        ("cpu", "0.33.0", False),
        ("cuda", "0.32.0", False),
    ):
        facts = Facts.of(device, "vllm", version, nixl)
        assert {entry.unmet(facts) is None for entry in entries} == {holds}
