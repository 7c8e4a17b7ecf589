"""Contradictions: what is declared and was seen otherwise, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from test_matrix_samples import FEATURE, cell, column, report

from conformance.contradictions import contradictions
from conformance.report import Cell, ConnectorResult
from conformance.report_parts import Contradiction
from conformance.verdict import Verdict
from matrix.collect import collect
from matrix.html import render_html
from matrix.markdown import render_markdown

PAGE = "https://docs.example/page"
START = {"feature": "start", "level": "core"}


def declared(support: str = "yes", **more: Any) -> dict[str, Any]:
    """One feature as a profile declares it, on a platform it claims."""
    feature = {"support": support, "limit": None, "source": PAGE, **more}
    return {"features": {FEATURE: feature}, "platforms": ["cpu"]}


def of(*cells: Cell, **more: Any) -> list[Contradiction]:
    return contradictions(report(column(*cells, **more)))


def start(verdict: Verdict, message: str = "", **more: Any) -> Cell:
    return cell("start/ready", verdict, message, **START, **more)


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.DEGRADED, Verdict.XFAIL])
def test_declared_yes_and_broken(verdict: Verdict) -> None:
    [found] = of(cell("a"), cell("b", verdict), declared=declared())
    assert found == Contradiction(
        connector="nixl",
        kind="feature",
        name=FEATURE,
        declared="yes",
        observed=f"1 of 2 checks broken: b {verdict}",
        source=PAGE,
    )


def test_declared_no_and_works() -> None:
    [found] = of(cell("a"), cell("b"), declared=declared("no", source=None))
    assert (found.declared, found.source) == ("no", "profile")
    assert found.observed == "works: 2 of 2 checks pass"


@pytest.mark.parametrize(
    ("support", "verdicts"),
    [
        ("yes", [Verdict.PASS]),
        ("yes", [Verdict.PASS, Verdict.NOT_RUN]),
        ("yes", [Verdict.ERROR]),
        ("yes", [Verdict.UNSUPPORTED]),
        ("no", [Verdict.FAIL]),
        ("no", [Verdict.PASS, Verdict.FAIL]),
        ("no", [Verdict.NOT_RUN]),
        ("partly", [Verdict.PASS, Verdict.FAIL]),
        ("partly", [Verdict.PASS]),
    ],
)
def test_what_agrees_or_was_not_seen_is_no_contradiction(
    support: str, verdicts: list[Verdict]
) -> None:
    cells = [cell(str(number), verdict) for number, verdict in enumerate(verdicts)]
    assert of(*cells, declared=declared(support)) == []


def test_declared_partly_and_nothing_works() -> None:
    [found] = of(cell("a", Verdict.FAIL), declared=declared("partly", limit="one layer at a time"))
    assert found.declared == "partly (one layer at a time)"


def test_what_nobody_declared_cannot_be_contradicted() -> None:
    silent = {"features": {}, "platforms": ["cpu"]}
    assert of(cell("a", Verdict.FAIL), cell("b"), declared=silent) == []


def test_many_broken_checks_are_counted_and_three_named() -> None:
    cells = [cell(f"l/{number}", Verdict.FAIL) for number in range(5)]
    [found] = of(*cells, declared=declared())
    assert found.observed == ("5 of 5 checks broken: l/0 fail, l/1 fail, l/2 fail and 2 more")


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.UNSUPPORTED])
def test_a_claimed_platform_that_the_engine_refuses(verdict: Verdict) -> None:
    claims = {"platforms": ["cpu"], "platforms_source": PAGE}
    [found] = of(start(verdict, "only on CUDA"), declared=claims)
    assert (found.kind, found.name, found.declared) == ("platform", "cpu", "yes")
    assert found.observed == "does not start: only on CUDA"
    assert found.source == PAGE


def test_a_platform_nobody_claims_on_which_it_starts() -> None:
    [found] = of(start(Verdict.PASS), declared={"platforms": ["cuda"]})
    assert (found.declared, found.observed) == ("no", "starts: start/ready pass")


@pytest.mark.parametrize(
    ("platforms", "cells"),
    [
        (["cuda"], [start(Verdict.UNSUPPORTED, "only on CUDA")]),
        (["cuda"], [start(Verdict.NOT_RUN)]),
        (["cuda"], [start(Verdict.PASS, through="a shim: no accelerator here")]),
        (["cpu"], [start(Verdict.PASS)]),
        (["cpu"], [start(Verdict.NOT_RUN)]),
        (["cpu"], [start(Verdict.ERROR)]),
    ],
)
def test_a_platform_that_is_as_declared(platforms: list[str], cells: list[Cell]) -> None:
    assert of(*cells, declared={"platforms": platforms}) == []


SAID = {"hma": False, "prom_metrics": True, "overrides": ["reset_cache"], "abstract_left": []}


@pytest.mark.parametrize(
    ("name", "claimed", "seen"),
    [
        ("hma", True, "no"),
        ("hma", False, None),
        ("prom_metrics", False, "yes"),
        ("reset_cache", False, "yes"),
        ("reset_cache", True, None),
        ("load_errors", True, "no"),
        ("stats", True, None),  # the class does not say
    ],
)
def test_a_declared_capability_against_the_class(
    name: str, claimed: bool, seen: str | None
) -> None:
    found = of(declared={"capabilities": {name: claimed}}, introspected=SAID)
    told = [(one.kind, one.name, one.observed) for one in found]
    assert told == ([("capability", name, f"the class says {seen}")] if seen else [])


@pytest.mark.parametrize(
    ("said", "name", "observed"),
    [
        ({"abstract_left": ["start_load_kv"]}, "abstract methods", "cannot be made: start_load_kv"),
        (
            {"takes_kv_cache_config": False, "constructor": ["vllm_config", "role"]},
            "constructor",
            "vllm_config, role",
        ),
        ({"returns_params": False}, "handoff", "returns no params"),
    ],
)
def test_what_every_profile_declares_by_being_one(
    said: dict[str, Any], name: str, observed: str
) -> None:
    [found] = of(declared={"handoff": "params_from_prefill"}, introspected=said)
    assert found.name == name
    assert observed in found.observed


@pytest.mark.parametrize(
    ("handoff", "said"),
    [
        ("params_from_prefill", {"returns_params": None}),
        ("params_from_prefill", {"returns_params": True}),
        ("none", {"returns_params": True}),  # LMCacheMPConnector returns figures about itself
        ("params_from_prefill", {"problem": "No module named 'nixl'"}),
    ],
)
def test_what_the_class_does_not_say_contradicts_nothing(
    handoff: str, said: dict[str, Any]
) -> None:
    every = dict.fromkeys(("hma", "load_errors", "reset_cache", "stats"), True)
    given = {"handoff": handoff, "capabilities": every if "problem" in said else {}}
    assert of(declared=given, introspected=said) == []


def test_a_report_without_an_engine_has_no_platform_to_contradict() -> None:
    claims = {"platforms": ["cpu"]}
    bare = report(column(start(Verdict.NOT_RUN), declared=claims), engine=None)
    assert contradictions(bare) == []


HOSTILE = "<b>|`x`|</b>"


def drawn(*columns: ConnectorResult) -> tuple[str, str]:
    """Both pages of a report as it would be saved."""
    made = report(*columns)
    made.contradictions = contradictions(made)
    matrix = collect([made])
    return render_markdown(matrix), render_html(matrix)


def test_the_pages_have_a_section_with_every_contradiction() -> None:
    for page in drawn(column(cell("a", Verdict.FAIL), declared=declared())):
        assert "Said, and not so" in page
        assert "1 of 1 checks broken: a fail" in page
        assert PAGE in page


def test_pages_without_a_contradiction_have_no_section() -> None:
    for page in drawn(column(cell("a"), declared=declared())):
        assert "Said, and not so" not in page


def test_foreign_words_cannot_break_the_pages() -> None:
    claims = {"platforms": ["cpu"], "platforms_source": HOSTILE}
    markdown, html = drawn(column(start(Verdict.FAIL, HOSTILE), declared=claims))
    assert HOSTILE not in markdown
    assert "&#124;" in markdown
    assert HOSTILE not in html


def test_the_newest_run_of_a_connector_speaks_for_it() -> None:
    old = report(column(cell("a", Verdict.FAIL), declared=declared()))
    old.contradictions = contradictions(old)
    new = report(column(cell("a"), declared=declared()), day=1)
    assert collect([old]).contradictions
    assert collect([old, new]).contradictions == ()
