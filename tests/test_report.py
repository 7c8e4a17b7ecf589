"""The report file: whole or not there, and refused with the reason when it is not ours."""

from __future__ import annotations

import errno
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from test_matrix_samples import cell, one

from conformance.errors import ReportError
from conformance.report import FILE_NAME, SCHEMA_VERSION, Cell, load, new_run_id, save
from conformance.verdict import Verdict

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A folder that already holds a report of one passing cell."""
    save(one(cell()), tmp_path)
    return tmp_path


def damaged(folder: Path, **changes: Any) -> Path:
    file = folder / FILE_NAME
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    return file


def test_what_is_saved_is_what_is_loaded(tmp_path: Path) -> None:
    report = one(cell(), cell("b", Verdict.FAIL, "grün × ≠", log_excerpt="line\n\tline"))
    file = save(report, tmp_path / "not" / "there yet")
    assert file == tmp_path / "not" / "there yet" / "report.json"
    assert load(file) == load(file.parent) == report
    assert json.loads(file.read_text())["schema_version"] == SCHEMA_VERSION


def test_a_new_report_replaces_the_old_and_leaves_nothing_beside_it(saved: Path) -> None:
    save(one(cell("b", Verdict.DEGRADED)), saved)
    assert load(saved).verdicts() == [Verdict.DEGRADED]
    assert os.listdir(saved) == [FILE_NAME]


def test_a_reader_meanwhile_sees_the_whole_old_file(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[Verdict]] = []
    replace = os.replace

    def watched(source: Path, target: Path) -> None:
        seen.append(load(saved).verdicts())
        replace(source, target)

    monkeypatch.setattr(os, "replace", watched)
    save(one(cell("b", Verdict.FAIL)), saved)
    assert seen == [[Verdict.PASS]]
    assert load(saved).verdicts() == [Verdict.FAIL]


@pytest.mark.parametrize("step", ["write", "replace"])
def test_a_full_disk_keeps_the_old_report_and_names_the_fix(
    saved: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def full(*_: object, **__: object) -> None:
        raise FULL

    owner, name = (Path, "write_text") if step == "write" else (os, "replace")
    with monkeypatch.context() as patched:
        patched.setattr(owner, name, full)
        with pytest.raises(ReportError) as caught:
            save(one(cell("b", Verdict.FAIL)), saved)
    message = str(caught.value)
    assert str(saved / FILE_NAME) in message
    assert "No space left on device" in message
    assert "--report DIR" in message
    assert load(saved).verdicts() == [Verdict.PASS]
    assert os.listdir(saved) == [FILE_NAME]


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ReportError, match=f"cannot write {tmp_path}/file/run/report.json"):
        save(one(cell()), tmp_path / "file" / "run")


def test_a_missing_report_says_how_to_make_one(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "gone.json"):
        with pytest.raises(ReportError, match=r"no report at .*--report DIR"):
            load(path)


@pytest.mark.parametrize("content", [b"", b'{"schema_version": 1', b"\xff\xfe\x00"])
def test_what_is_not_json_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "cut.json"
    file.write_bytes(content)
    with pytest.raises(ReportError, match=f"{file} is not a readable report"):
        load(file)


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_schema_version_is_refused_with_both_numbers(saved: Path, version: object) -> None:
    file = damaged(saved, schema_version=version)
    with pytest.raises(ReportError) as caught:
        load(saved)
    assert f"{file}: schema_version is {version!r}" in str(caught.value)
    assert f"reads {SCHEMA_VERSION}" in str(caught.value)


@pytest.mark.parametrize("document", ["[]", '"text"', "7"])
def test_json_that_is_no_report_is_refused(tmp_path: Path, document: str) -> None:
    (tmp_path / FILE_NAME).write_text(document)
    with pytest.raises(ReportError, match="schema_version is None"):
        load(tmp_path)


def test_a_bad_field_is_named_by_its_path(saved: Path) -> None:
    connectors = json.loads((saved / FILE_NAME).read_text())["connectors"]
    connectors[0]["cells"][0]["verdict"] = "splendid"
    damaged(saved, connectors=connectors)
    with pytest.raises(ReportError, match=r"report\.json: field connectors\.0\.cells\.0\.verdict"):
        load(saved)
    damaged(saved, connectors=[], surprise=1)
    with pytest.raises(ReportError, match="field surprise: "):
        load(saved)


def test_a_cell_nobody_reached_is_not_run() -> None:
    fresh = Cell(check="a", feature="streaming", level="core", requirement="It holds.")
    assert fresh.verdict is Verdict.NOT_RUN
    assert "before it was reached" in fresh.message


def test_columns_and_cells_are_found_by_name() -> None:
    report = one(cell("a"), cell("b", Verdict.FAIL))
    column = report.connector("nixl")
    assert column is not None
    assert (found := column.cell("b")) is not None
    assert found.verdict is Verdict.FAIL
    assert column.cell("c") is None
    assert report.connector("example") is None


def test_a_run_id_is_its_time() -> None:
    assert new_run_id(datetime(2026, 1, 31, 12, 0, tzinfo=UTC)) == "20260131T120000Z"
