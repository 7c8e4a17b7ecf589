"""The files: same reports, same bytes; all of them or a clear error."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from pydantic import TypeAdapter
from test_matrix_samples import cell, column, every_standing, one, report

from conformance.errors import ReportError
from conformance.verdict import Verdict
from matrix import compare, render
from matrix.collect import collect
from matrix.model import Matrix
from matrix.schema import COMMITTED, FOLDER, text_of

NAMES = ["matrix.md", "matrix.html", "matrix.json"]
REPORTS = [
    report(column(cell(), cell("b", Verdict.FAIL, "broken")), column(name="example")),
    one(cell("c", Verdict.NOT_RUN), day=1),
]


def test_render_writes_its_files_into_a_new_folder(tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    assert render(REPORTS, out) == [out / name for name in [*NAMES, "badges"]]
    assert sorted(path.name for path in out.iterdir()) == sorted([*NAMES, "badges"])
    assert [path.name for path in sorted((out / "badges").iterdir())] == [
        "example.json",
        "nixl.json",
    ]


def test_a_badge_of_a_connector_that_is_no_longer_there_goes(tmp_path: Path) -> None:
    render(REPORTS, tmp_path)
    (tmp_path / "badges" / "notes.txt").write_text("mine")
    render(REPORTS[1:], tmp_path)
    assert sorted(path.name for path in (tmp_path / "badges").iterdir()) == [
        "nixl.json",
        "notes.txt",
    ]


def test_same_reports_give_the_same_bytes_in_any_order(tmp_path: Path) -> None:
    first, again = tmp_path / "a", tmp_path / "b"
    render(REPORTS, first)
    render(REPORTS[::-1], again)
    files = [path.relative_to(first) for path in first.rglob("*") if path.is_file()]
    assert len(files) == len(NAMES) + 2
    for file in files:
        assert (first / file).read_bytes() == (again / file).read_bytes()


def test_the_json_is_the_matrix(tmp_path: Path) -> None:
    render(REPORTS, tmp_path)
    read = TypeAdapter(Matrix).validate_json((tmp_path / "matrix.json").read_bytes())
    assert read == collect(REPORTS)


@pytest.mark.parametrize("file", COMMITTED, ids=lambda file: file.name)
def test_the_committed_schema_is_current(file: Path) -> None:
    assert file.read_text(encoding="utf-8") == text_of(COMMITTED[file]), (
        f"{file.name} is stale: run python -m matrix.schema"
    )


def test_the_json_obeys_its_schema_and_a_broken_one_does_not(tmp_path: Path) -> None:
    render([every_standing()], tmp_path)
    compare([every_standing()], REPORTS, tmp_path)
    for name, wrong in (("matrix", {"rows": {}}), ("diff", {"changes": {}})):
        schema = json.loads((FOLDER / f"{name}.schema.json").read_text(encoding="utf-8"))
        written = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
        jsonschema.validate(written, schema)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(written | wrong, schema)


def test_render_replaces_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "matrix.md").write_text("old")
    render(REPORTS, tmp_path)
    assert (tmp_path / "matrix.md").read_text().startswith("# KV connector conformance matrix")


def test_no_reports_is_an_error_and_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="no reports to render"):
        render([], tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ReportError, match=r"cannot write .*/file/matrix\.md: .*--out DIR"):
        render(REPORTS, tmp_path / "file")


def test_a_failed_write_leaves_no_partial_file(tmp_path: Path) -> None:
    (tmp_path / "matrix.html").mkdir()
    with pytest.raises(ReportError, match=r"cannot write .*matrix\.html"):
        render(REPORTS, tmp_path)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
