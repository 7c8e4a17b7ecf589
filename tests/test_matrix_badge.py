"""Badges: green is for proof alone, and brightest for proof of everything."""

from __future__ import annotations

import pytest
from test_matrix_samples import (
    REFUSAL,
    SHIM,
    all_of,
    cell,
    column,
    control,
    one,
    report,
    stopped,
)

from conformance.report import ConnectorResult, Report
from conformance.verdict import Verdict
from matrix.badge import badge
from matrix.collect import collect

GREEN = {"brightgreen", "green", "yellowgreen"}


def drawn(*columns: ConnectorResult) -> tuple[str, str]:
    return said(report(*columns))


def said(found: Report) -> tuple[str, str]:
    made = badge(collect([found]).columns[0])
    return str(made["message"]), str(made["color"])


def test_it_is_what_an_endpoint_badge_has_to_be() -> None:
    assert badge(collect([one(cell())]).columns[0]) == {
        "schemaVersion": 1,
        "label": "NIXL",
        "message": "1/1",
        "color": "brightgreen",
    }


def test_the_brightest_green_is_for_every_check_without_help() -> None:
    part = column(cell("a"), cell("b", Verdict.NOT_RUN, "no GPU"))
    assert drawn(part) == ("1/2", "green")
    assert drawn(all_of("x", Verdict.PASS, through=SHIM)) == (
        "3/3 through a shim",
        "yellowgreen",
    )


@pytest.mark.parametrize("verdict", [v for v in Verdict if v is not Verdict.PASS])
def test_no_connector_without_a_pass_is_green(verdict: Verdict) -> None:
    assert drawn(all_of("x", verdict, "why"))[1] not in GREEN


@pytest.mark.parametrize(
    "verdict", [Verdict.FAIL, Verdict.DEGRADED, Verdict.ERROR, Verdict.XFAIL, Verdict.XPASS]
)
def test_one_check_that_is_not_right_takes_the_green_away(verdict: Verdict) -> None:
    words, color = drawn(column(cell("a"), cell("b", verdict, "why")))
    assert words == f"1/2, {verdict}"
    assert color not in GREEN


def test_a_connector_that_did_not_run_says_how_far_it_came() -> None:
    assert drawn(all_of("x", Verdict.UNSUPPORTED, REFUSAL)) == ("refused at start", "lightgrey")
    assert drawn(stopped("x", "start/ready", Verdict.FAIL, "dies")) == ("does not start", "red")
    assert drawn(all_of("x", Verdict.NOT_RUN, "needs y")) == ("not tried", "lightgrey")
    assert drawn(all_of("x", Verdict.ERROR, "needs y")) == ("not judged", "lightgrey")


def test_a_run_that_cannot_be_believed_gives_no_badge_to_show() -> None:
    blind = collect([one(cell(), controls=[control(Verdict.PASS)])]).columns[0]
    assert badge(blind)["isError"] is True
    assert badge(blind)["color"] not in GREEN
