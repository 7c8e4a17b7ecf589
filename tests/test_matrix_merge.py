"""Several reports, one matrix: shards of a run, and results that disagree."""

from __future__ import annotations

from datetime import timedelta

import pytest
from test_matrix_samples import FEATURE, FIRST, cell, column, one, report

from conformance.report import Report
from conformance.verdict import Verdict
from matrix.collect import collect
from matrix.html import render_html
from matrix.markdown import render_markdown
from matrix.model import Matrix


def shard(*cells_of: str, minutes: int = 0, **more: object) -> Report:
    """A run of some checks of nixl, a job that started a few minutes after the first."""
    started = FIRST + timedelta(minutes=minutes)
    checks = [cell(name, feature=name.split("/")[0]) for name in cells_of]
    return report(column(*checks), started=started, run_id=f"job-{minutes}", **more)


def older(matrix: Matrix) -> list[str]:
    return [run.run_id for found in matrix.cells for run in matrix.older_runs(found)]


def test_shards_of_different_connectors_stand_side_by_side() -> None:
    matrix = collect([one(cell()), report(column(cell(), name="example"))])
    assert [(c.name, c.passed) for c in matrix.columns] == [("example", 1), ("nixl", 1)]


def test_shards_of_one_connector_are_one_column_without_old_results() -> None:
    matrix = collect([shard("start"), shard("streaming", minutes=5), shard("topology", minutes=9)])
    assert (matrix.columns[0].passed, matrix.columns[0].shards) == (3, (0, 1))
    assert older(matrix) == []
    assert "older run" not in render_html(matrix)


@pytest.mark.parametrize(
    "first",
    [
        shard("start", "streaming"),  # it tried what the newer one tried
        shard("start", version="0.31.0"),
        shard("start", minutes=-24 * 60),
        shard("start", seed=7),
        shard("start", packages={"nixl": "1.4"}),
    ],
)
def test_what_is_not_part_of_the_same_work_is_an_older_run(first: Report) -> None:
    matrix = collect([first, shard("streaming", minutes=5)])
    assert matrix.columns[0].shards == ()
    assert older(matrix) == [first.run_id]


def test_a_repeated_shard_takes_the_place_of_the_first() -> None:
    first, again = shard("start"), shard("start", minutes=3)
    matrix = collect([first, again, shard("streaming", minutes=5)])
    assert matrix.columns[0].shards == (1,)
    assert older(matrix) == []


def test_a_newer_result_wins_and_what_it_replaced_is_shown() -> None:
    old = one(cell("a", Verdict.FAIL, "no bytes moved"), cell("b"))
    matrix = collect([old, one(cell("a"), cell("b"), day=1)])
    shown = {r.cell.check: r for r in matrix.cell("nixl", FEATURE).checks}
    assert [(r.verdict, r.message, r.run) for r in shown["a"].replaced] == [
        (Verdict.FAIL, "no bytes moved", 0)
    ]
    assert shown["b"].replaced == ()
    for page in (render_markdown(matrix), render_html(matrix)):
        assert "Where reports disagree" in page
        assert "❌ fail in 20260130T120000Z: no bytes moved" in page


def test_runs_that_agree_or_could_not_try_disagree_with_nobody() -> None:
    agreed = collect([one(cell()), one(cell(), day=1)])
    untried = collect([one(cell()), one(cell(verdict=Verdict.NOT_RUN, message="x"), day=1)])
    for matrix in (agreed, untried):
        assert "Where reports disagree" not in render_markdown(matrix)
        assert "Where reports disagree" not in render_html(matrix)


def test_contradictions_of_shards_add_up_once_each() -> None:
    told = {"connector": "nixl", "kind": "feature", "declared": "yes", "source": "profile"}
    said = [told | {"name": name, "observed": "broken"} for name in ("start", "streaming")]
    first = shard("start", contradictions=said[:1])
    second = shard("streaming", minutes=5, contradictions=said)
    assert [c.name for c in collect([first, second]).contradictions] == ["start", "streaming"]
