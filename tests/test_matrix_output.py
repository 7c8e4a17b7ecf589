"""The three files: same reports, same bytes; all of them or a clear error."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import TypeAdapter
from test_matrix_samples import cell, column, one, report

from conformance.errors import ReportError
from conformance.verdict import Verdict
from matrix import render
from matrix.collect import collect
from matrix.model import Matrix

NAMES = ["matrix.md", "matrix.html", "matrix.json"]
REPORTS = [
    report(column(cell(), cell("b", Verdict.FAIL, "broken")), column(name="example")),
    one(cell("c", Verdict.NOT_RUN), day=1),
]


def test_render_writes_three_files_into_a_new_folder(tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    assert render(REPORTS, out) == [out / name for name in NAMES]
    assert sorted(path.name for path in out.iterdir()) == sorted(NAMES)


def test_same_reports_give_the_same_bytes_in_any_order(tmp_path: Path) -> None:
    first = [path.read_bytes() for path in render(REPORTS, tmp_path / "a")]
    again = [path.read_bytes() for path in render(REPORTS[::-1], tmp_path / "b")]
    assert first == again


def test_the_json_is_the_matrix(tmp_path: Path) -> None:
    render(REPORTS, tmp_path)
    read = TypeAdapter(Matrix).validate_json((tmp_path / "matrix.json").read_bytes())
    assert read == collect(REPORTS)


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
