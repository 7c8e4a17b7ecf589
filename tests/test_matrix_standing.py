"""Connectors in groups: who ran, who ran with help, who did not, and each in one place."""

from __future__ import annotations

import re

import pytest
from test_matrix_html import Tags
from test_matrix_samples import (
    FEATURE,
    REFUSAL,
    SHIM,
    all_of,
    cell,
    column,
    every_standing,
    fact,
    one,
    report,
    stopped,
)

from conformance.features import FEATURES
from conformance.report import ConnectorResult
from conformance.verdict import Verdict
from matrix import words
from matrix.collect import collect
from matrix.html import render_html
from matrix.markdown import render_markdown
from matrix.parts import Standing

# Features of the sample report that have a check.
TRIED = 3
MATRIX = collect([every_standing()])
MARKDOWN = render_markdown(MATRIX)
HTML = render_html(MATRIX)


def standing(*columns: ConnectorResult) -> Standing:
    return collect([report(*columns)]).columns[0].standing


def test_every_connector_is_in_the_group_of_how_far_it_came() -> None:
    grouped = {group: [c.name for c in found] for group, found in MATRIX.grouped().items()}
    assert grouped == {
        Standing.RAN: ["a-ran", "b-ran", "c-ran", "d-ran"],
        Standing.SHIM: ["shimmed"],
        Standing.NO_TRANSFER: ["idle"],
        Standing.REFUSED: ["dead", "refused"],
        Standing.NOT_TRIED: ["missing"],
    }


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.DEGRADED, Verdict.XFAIL])
def test_whatever_breaks_the_first_transfer_is_no_transfer(verdict: Verdict) -> None:
    assert standing(stopped("x", "transfer/completion", verdict, "")) is Standing.NO_TRANSFER
    assert standing(stopped("x", "streaming/answer", verdict, "")) is Standing.RAN


def test_a_failed_start_does_not_hide_what_ran_elsewhere() -> None:
    dead = stopped("x", "start/ready", Verdict.FAIL, "it dies")
    earlier = report(all_of("x", Verdict.PASS), day=-1)
    assert collect([report(dead), earlier]).columns[0].standing is Standing.RAN


def test_errors_alone_are_no_judgement_unless_something_was_seen() -> None:
    lost = cell("a", Verdict.ERROR, "needs nixl")
    assert standing(column(lost)) is Standing.NOT_TRIED
    assert standing(column(lost, cell("b", Verdict.FAIL))) is Standing.RAN
    assert standing(column(cell("a", Verdict.ERROR, evidence=fact(1)))) is Standing.RAN


def test_the_words_of_the_start_go_before_those_of_what_failed_after_it() -> None:
    refused = all_of("x", Verdict.UNSUPPORTED, REFUSAL)
    refused.cells[2].verdict, refused.cells[2].message = Verdict.ERROR, "a port was taken"
    reason = collect([report(refused)]).columns[0].reason
    assert reason
    assert reason.text == REFUSAL


def test_a_shim_that_nothing_came_through_makes_no_claim() -> None:
    assert standing(all_of("x", Verdict.NOT_RUN, through=SHIM)) is Standing.NOT_TRIED
    tried = collect([report(all_of("x", Verdict.NOT_RUN, through=SHIM))])
    assert all(not found.shims for found in tried.cells)


def test_markdown_has_connectors_as_rows_with_one_line_for_each_that_did_not_run() -> None:
    head = next(line for line in MARKDOWN.splitlines() if line.startswith("| Connector | Proof"))
    assert head.endswith(f"| {FEATURES[-2].title} | {FEATURES[-1].title} |")
    rows = [line for line in MARKDOWN.splitlines() if line.count("|") == head.count("|")]
    assert [row.split("|")[1].strip() for row in rows[2:]] == [
        "**Ran here**",
        *("A-RAN", "B-RAN", "C-RAN", "D-RAN"),
        "**Ran here through a shim**",
        "SHIMMED",
        "**Starts, but fails the first transfer**",
        "IDLE",
    ]
    assert f"\n| REFUSED | ➖ | {REFUSAL} | 3 |\n" in MARKDOWN
    assert "\n| DEAD | ❌ | it dies with 'no attribute x' | 3 |\n" in MARKDOWN
    assert "\n| MISSING | ❔ | needs flexkv: pip install flexkv | 3 |\n" in MARKDOWN
    assert MARKDOWN.count(REFUSAL) == MARKDOWN.count("needs flexkv") == 1


def test_markdown_turns_over_with_the_sixth_row() -> None:
    five = [all_of(f"n{i}", Verdict.PASS) for i in range(5)]
    lines = [all_of(f"r{i}", Verdict.UNSUPPORTED, REFUSAL) for i in range(9)]
    assert "| Feature | N0 | N1 | N2 | N3 | N4 |" in render_markdown(
        collect([report(*five, *lines)])
    )
    six = report(*five, all_of("n5", Verdict.PASS))
    assert "| Connector | Proof | Start |" in render_markdown(collect([six]))


def test_a_matrix_where_nothing_ran_has_no_table_and_still_says_why() -> None:
    text = render_markdown(collect([report(all_of("r", Verdict.UNSUPPORTED, REFUSAL))]))
    assert "| Feature |" not in text
    assert f"| R | ➖ | {REFUSAL} | 3 |" in text


def test_what_a_gate_left_out_is_one_line() -> None:
    line = "- ❔ see transfer/completion: IDLE (1 check)"
    assert line in MARKDOWN.splitlines()
    assert "### " + words.STANDING[Standing.NOT_TRIED] in MARKDOWN


def test_shims_are_marked_on_every_cell_won_through_one_and_on_no_other() -> None:
    cells = [b for b in Tags(HTML).named("button") if b.get("data-cell")]
    marked = {b["data-cell"] for b in cells if words.SHIM_MEANING in (b.get("aria-label") or "")}
    assert marked == {"shimmed/start", f"shimmed/{FEATURE}", "shimmed/streaming"}
    assert HTML.count('<small class="shim">') == len(marked)
    row = next(line for line in MARKDOWN.splitlines() if line.startswith("| SHIMMED"))
    assert row.count(words.SHIM) == len(marked)
    assert f"- SHIMMED: {SHIM}" in MARKDOWN
    table = MARKDOWN.split("\n## Runs")[0].splitlines()
    others = [line for line in table if re.match(r"\| (.-RAN|IDLE) ", line)]
    assert len(others) == 5
    assert not any(words.SHIM in line for line in others)


def test_the_page_has_a_body_for_every_group_and_a_row_for_every_connector() -> None:
    tags = Tags(HTML)
    names = [
        (attrs["data-connector"] or "").split()[0]
        for attrs in tags.named("tr")
        if attrs.get("data-connector")
    ]
    assert names == [c.name for group in MATRIX.grouped().values() for c in group]
    for group in MATRIX.grouped():
        assert words.STANDING[group].replace("'", "&#39;") in HTML
    lines = [b["data-cell"] for b in tags.named("button") if "line" in (b.get("class") or "")]
    assert lines == ["dead", "refused", "missing"]


def test_every_button_has_its_evidence_and_every_check_is_there_once() -> None:
    tags = Tags(HTML)
    sections = [s["id"] for s in tags.named("section")]
    assert len(set(sections)) == len(sections)
    assert {b["data-cell"] for b in tags.named("button") if b.get("data-cell")} == set(sections)
    checks = [d for d in tags.named("details") if (d.get("class") or "").startswith("check v-")]
    assert len(checks) == sum(column.total for column in MATRIX.columns) == 27


def test_a_cell_without_a_check_says_so_and_offers_nothing() -> None:
    assert "idle/topology" not in HTML
    assert HTML.count('<span class="none"') == 6 * (len(FEATURES) - TRIED)
    asked = render_html(collect([one(cell())]))
    assert '<span class="none"' not in asked
    assert "nixl/topology" in asked
