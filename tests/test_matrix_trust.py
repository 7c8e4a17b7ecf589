"""Controls and the registry's gate: a run that cannot be believed wins nothing."""

from __future__ import annotations

import pytest
from test_matrix_samples import FEATURE, cell, column, control, one, report

from conformance.report import Report
from conformance.report_parts import AssumptionResult, Exemption, RegistryGate
from conformance.verdict import Verdict
from matrix import trust_words
from matrix.collect import collect
from matrix.html import render_html
from matrix.markdown import render_markdown

CAUGHT = [control(Verdict.FAIL)]
MISSED = [control(Verdict.PASS, "")]


def verdict(*reports: Report) -> Verdict:
    return collect(reports).cell("nixl", FEATURE).verdict


def pages(*reports: Report) -> tuple[str, str]:
    matrix = collect(reports)
    return render_markdown(matrix), render_html(matrix)


@pytest.mark.parametrize("missed", [Verdict.PASS, Verdict.ERROR, Verdict.UNSUPPORTED])
def test_no_pass_counts_in_a_run_that_did_not_find_out_its_control(missed: Verdict) -> None:
    blind = one(cell("a"), cell("b", Verdict.FAIL, "broken"), controls=[control(missed)])
    found = collect([blind]).cell("nixl", FEATURE)
    assert (found.passed, found.tally) == (0, {Verdict.ERROR: 1, Verdict.FAIL: 1})
    assert "control Bench was not found out in run" in found.reasons[0].text


@pytest.mark.parametrize("seen", [Verdict.FAIL, Verdict.DEGRADED, Verdict.NOT_RUN])
def test_a_control_that_was_found_out_or_not_tried_takes_nothing(seen: Verdict) -> None:
    assert verdict(one(cell(), controls=[control(seen)])) is Verdict.PASS


@pytest.mark.parametrize(("held", "wanted"), [(False, Verdict.ERROR), (None, Verdict.PASS)])
def test_no_pass_counts_on_an_engine_of_which_an_assumption_does_not_hold(
    held: bool | None, wanted: Verdict
) -> None:
    found = AssumptionResult(id="counters/finished", says="It counts.", held=held)
    run = one(cell()).model_copy(update={"assumptions": [found]})
    assert verdict(run) is wanted
    for page in pages(run):
        told = "assumption counters/finished did not hold in run" in page
        assert told is (held is False)


def test_a_blind_suite_is_not_believed_in_its_other_runs_either() -> None:
    alone = report(controls=MISSED, day=1)
    assert verdict(one(cell()), alone) is Verdict.ERROR
    other_suite = one(cell(), suite=alone.suite.model_copy(update={"commit": "another"}))
    assert verdict(other_suite, alone) is Verdict.PASS
    assert verdict(one(cell(), version="0.31.0"), alone) is Verdict.PASS


def test_finding_it_out_later_clears_the_suite_but_not_the_blind_run() -> None:
    blind, clear = report(controls=MISSED), report(controls=CAUGHT, day=1)
    assert verdict(one(cell(), day=2), blind, clear) is Verdict.PASS
    assert verdict(one(cell(), controls=MISSED), clear) is Verdict.ERROR


def test_both_pages_say_whether_the_run_can_be_believed() -> None:
    for page in pages(one(cell(), controls=CAUGHT)):
        assert "Can this be believed?" in page
        assert "control Bench: found out: fail: answer is wrong" in page
        assert "not to be believed" not in page
    for page in pages(one(cell(), controls=MISSED)):
        assert "No verdict of this run can be believed" in page
        assert "not all found out: not every run here can be believed" in page


def test_a_run_without_controls_is_named_beside_one_that_has_them() -> None:
    for page in pages(one(cell(), controls=CAUGHT), one(cell("b"), day=1)):
        assert "no control was tried" in page
        assert "found out, but not tried in every run" in page


def test_without_any_control_there_is_no_section_and_the_head_says_so() -> None:
    for page in pages(one(cell())):
        assert "Can this be believed?" not in page
        assert "nothing says whether a faked transfer would be found out" in page


EXEMPT = {
    "Hidden": Exemption(reason="moves no KV at all, ever", link="https://x.org/", seen_in="1")
}


def gate(**more: object) -> RegistryGate:
    fields: dict[str, object] = {"decides": True, "vllm": "0.32.0", "platform": "cpu"}
    fields |= {"registered": ["Nixl", "Hidden"], "profiles": {"Nixl": ["nixl"]}, "exempt": EXEMPT}
    return RegistryGate.model_validate(fields | more)


def test_the_registry_is_told_with_its_exemptions() -> None:
    for page in pages(one(cell(), registry=gate())):
        assert "The engine&#39;s registry" in page or "The engine's registry" in page
        assert "registers 2 connectors: 1 with a profile, 1 exempt, 0 with neither." in page
        assert "Hidden is exempt: moves no KV at all, ever" in page


def test_an_untested_connector_is_told_once() -> None:
    found = gate(registered=["Nixl", "Hidden", "Brand"], missing=["Brand"])
    problems = trust_words.registry_problems(found)
    for page in pages(one(cell(), registry=found, problems=[*problems, "port taken"])):
        assert page.count("kv-conformance init-profile Brand") == 1
        assert "port taken" in page


def test_a_registry_that_does_not_decide_or_was_not_read_has_no_section() -> None:
    chosen = one(cell(), registry=gate(decides=False, missing=["Brand"]))
    for page in (*pages(chosen), *pages(one(cell()))):
        assert "Brand" not in page
        assert "registers 2" not in page


def test_the_newest_comparison_stands_for_a_version_and_platform() -> None:
    old = one(cell(), registry=gate(missing=["Brand"]))
    for page in pages(old, one(cell(), registry=gate(), day=1)):
        assert "Brand" not in page
    for page in pages(old, one(cell(), registry=gate(platform="cuda"), day=1)):
        assert "Brand" in page


def test_a_control_in_a_report_of_its_own_draws_no_column() -> None:
    matrix = collect([report(controls=CAUGHT), report(column(cell()))])
    assert [c.name for c in matrix.columns] == ["nixl"]
