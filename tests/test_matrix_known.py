"""What is known to fail, as the matrix and its diff show it."""

from __future__ import annotations

from typing import Any

import pytest
from expectation_samples import TODAY, entry, ruled
from test_matrix_samples import FEATURE, cell, expected, one

from conformance.evidence import Evidence
from conformance.expectations_outcome import tally, words
from conformance.report import Cell, Report
from conformance.verdict import Verdict
from matrix.collect import collect
from matrix.diff import Diff, Kind, diff
from matrix.diff_page import render_diff_markdown
from matrix.html import render_html
from matrix.known import file_line
from matrix.markdown import render_markdown
from matrix.parts import Flaky

PASS, FAIL, XFAIL, XPASS = Verdict.PASS, Verdict.FAIL, Verdict.XFAIL, Verdict.XPASS
PAGES = [render_markdown, render_html]


def flaky(verdict: Verdict, seen: Verdict | None = None, check: str = "a", **more: Any) -> Cell:
    found = expected(flaky=True, seen=seen or verdict, reason="A race.", **more)
    return cell(check, verdict, "sometimes" if verdict is XFAIL else "", expectation=found)


def with_file(*seen: Verdict) -> Report:
    """A run of two lengths with a file of three entries."""
    ruling = ruled(
        entry(check="length/1"), entry(check="length/B"), entry(expires=TODAY.replace(year=2020))
    )
    cells = [cell(name, verdict) for name, verdict in zip(("length/1", "length/B"), seen)]  # noqa: B905
    for found in cells:
        ruling.settle("nixl", found)
    report = one(*cells, expectations=ruling.result)
    tally(report)
    report.problems += ["no disk", *words(report.expectations)]
    return report


@pytest.mark.parametrize("page", PAGES)
def test_known_failures_stand_apart_and_after_the_others(page: Any) -> None:
    known = cell("a", XFAIL, "slow", expectation=expected(link="https://x.org/7"))
    text = page(collect([one(known, cell("b", FAIL, "broken"))]))
    right, apart = text.index("What is not right"), text.index("Known failures")
    assert right < text.index("broken", right) < apart
    reason = "slow (expected: fail: issue 7 ("
    assert text.index(reason, apart)
    assert reason not in text[right:apart]
    assert "https://x.org/7" in text[apart:]


def test_numbers_in_cells_go_on_from_what_is_not_right_to_what_is_known() -> None:
    known = cell("a", XFAIL, "slow", expectation=expected())
    text = render_markdown(collect([one(known, cell("b", FAIL, "broken"))]))
    assert "<sup>1, 2</sup>" in text
    assert "\n1. ❌ broken\n" in text
    assert "\n2. 🟣 slow" in text


@pytest.mark.parametrize("page", PAGES)
def test_without_any_of_them_no_section_says_so(page: Any) -> None:
    text = page(collect([one(cell(), cell("b", FAIL, "broken"))]))
    for heading in ("Known failures", "Known to come and go", ">Expectations<", "## Expectations"):
        assert heading not in text


def test_how_often_a_flaky_check_failed_is_counted_over_all_runs() -> None:
    reports = [
        one(flaky(XFAIL, FAIL), flaky(PASS, check="b")),
        one(flaky(PASS), day=1),
        one(flaky(XFAIL, FAIL), day=2),
        one(flaky(Verdict.ERROR), day=3),
        one(flaky(Verdict.DEGRADED), day=4),
        one(cell("a", XFAIL, expectation=expected()), day=5),
        one(cell("a"), day=6),
    ]
    matrix = collect(reports[::-1])
    said = "flaky, at times fail: A race."
    assert matrix.flaky == (
        Flaky(connector="nixl", check="a", failed=2, tried=3, reason=said),
        Flaky(connector="nixl", check="b", failed=0, tried=1, reason=said),
    )
    assert f"| NIXL | `a` | in 2 of 3 runs | {said} |" in render_markdown(matrix)
    assert "<td>in 2 of 3 runs</td>" in render_html(matrix)


def test_the_newest_reason_of_a_flaky_check_is_told() -> None:
    older, newer = one(flaky(PASS)), one(flaky(PASS, link="https://x.org/7"), day=1)
    [found] = collect([newer, older]).flaky
    assert found.reason.endswith("(https://x.org/7)")


@pytest.mark.parametrize("page", PAGES)
def test_what_became_of_the_file_and_what_to_do(page: Any) -> None:
    report = with_file(PASS, FAIL)
    matrix = collect([report])
    assert matrix.runs[0].problems == ("no disk",)
    text = page(matrix)
    assert "known.yaml, 3 entries: 1 stale, 1 met, 1 expired" in text
    for problem in words(report.expectations):
        assert text.count(problem) == 1


def test_a_file_in_a_line() -> None:
    for count, said in ((0, "known.yaml, 0 entries"), (1, "known.yaml, 1 entry: 1 untried")):
        result = ruled(*[entry()] * count).result
        assert result is not None
        assert file_line(result) == said


def test_an_unexpected_pass_needs_proof_as_any_other() -> None:
    passed = collect([one(cell("a", XPASS, "why"))]).cell("nixl", FEATURE)
    assert passed.verdict is XPASS
    claimed = collect([one(cell("a", XPASS, "why", evidence=Evidence()))]).cell("nixl", FEATURE)
    assert claimed.verdict is Verdict.ERROR
    assert "the report says xpass, but its evidence says error" in claimed.reasons[0].text


# The diff


def changed(old: Cell, new: Cell) -> Diff:
    return diff(collect([one(old)]), collect([one(new, day=1)]))


def kinds(old: Cell, new: Cell) -> list[Kind]:
    return [change.kind for change in changed(old, new).changes]


KNOWN = cell("a", XFAIL, "slow", expectation=expected())
FLAKY_PASS, FLAKY_FAIL = flaky(PASS), flaky(XFAIL, FAIL)


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (FLAKY_PASS, FLAKY_FAIL, Kind.FLAKY),
        (FLAKY_FAIL, FLAKY_PASS, Kind.FLAKY),
        (cell("a"), FLAKY_FAIL, Kind.FLAKY),
        (KNOWN, FLAKY_PASS, Kind.FLAKY),
        (FLAKY_FAIL, FLAKY_FAIL, None),
        (FLAKY_PASS, FLAKY_PASS, None),
        (FLAKY_PASS, flaky(Verdict.ERROR), Kind.LOST),
        (FLAKY_PASS, flaky(Verdict.DEGRADED), Kind.LOST),
        (FLAKY_FAIL, flaky(Verdict.DEGRADED), Kind.CHANGED),
        (cell("a", FAIL), FLAKY_PASS, Kind.WON),
        (cell("a", FAIL), FLAKY_FAIL, Kind.CHANGED),
        (FLAKY_FAIL, cell("a"), Kind.WON),
        (FLAKY_PASS, cell("a", FAIL), Kind.LOST),
        (FLAKY_PASS, KNOWN, Kind.LOST),
        (KNOWN, cell("a", FAIL), Kind.CHANGED),
        (KNOWN, cell("a", XPASS), Kind.WON),
        (cell("a"), KNOWN, Kind.LOST),
    ],
)
def test_what_comes_and_goes_is_neither_lost_nor_won(
    old: Cell, new: Cell, kind: Kind | None
) -> None:
    assert kinds(old, new) == ([kind] if kind else [])
    assert changed(old, new).exit_code == (1 if kind is Kind.LOST else 0)


def test_less_proof_is_told_of_a_flaky_check_too() -> None:
    assert kinds(FLAKY_PASS, FLAKY_PASS.model_copy(update={"through": "a shim"})) == [Kind.WEAKER]


def test_the_page_of_a_diff_names_what_came_or_went() -> None:
    before, now = collect([one(FLAKY_PASS)]), collect([one(FLAKY_FAIL, day=1)])
    text = render_diff_markdown(diff(before, now), before, now)
    assert "**1 flaky, 0 as before**" in text
    section = text.split("## Known to come and go, and did")[1]
    assert "✅ pass, control → 🟣 xfail: sometimes (expected: flaky, at times fail:" in section
