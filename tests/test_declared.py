"""What a profile declares unsupported is not tried; without a source it may not say so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from sample_profiles import DOCUMENT, profile

from conformance.declared import exceptions_of, must_be_supported
from conformance.errors import Refused, UsageError
from conformance.evidence import Evidence
from conformance.judge import judge
from conformance.profile import Profile
from conformance.profile_file import builtin_profiles, load_profile
from conformance.registry import PlannedCell, all_checks
from conformance.verdict import Verdict

NO = {"support": "no", "limit": "one process keeps it all", "source": "its/source.py (0.32.0)"}


def cell_of(check: str, subject: Profile) -> PlannedCell:
    found = next(one for one in all_checks() if one.id == check)
    return PlannedCell(found, found.cases_for(subject)[0], subject, "tiny-llama")


def test_a_declared_feature_is_unsupported_with_the_source() -> None:
    subject = profile(features={"streaming": NO})
    with pytest.raises(Refused) as caught:
        must_be_supported(cell_of("streaming/answer", subject), keep_going=False)
    found = judge(caught.value, Evidence())
    assert found.verdict is Verdict.UNSUPPORTED
    assert found.message == (
        "declared unsupported: one process keeps it all (source: its/source.py (0.32.0))"
    )


def test_another_feature_is_tried() -> None:
    must_be_supported(cell_of("length", profile(features={"streaming": NO})), keep_going=False)


@pytest.mark.parametrize("support", ["yes", "partly"])
def test_what_is_supported_somehow_is_tried(support: str) -> None:
    subject = profile(features={"streaming": {"support": support}})
    must_be_supported(cell_of("streaming/answer", subject), keep_going=False)


def test_a_declared_variant_is_unsupported_and_its_neighbours_are_tried() -> None:
    subject = profile(variants={"moe": NO, "mla": {"support": "partly"}})
    with pytest.raises(Refused, match="one process keeps it all"):
        must_be_supported(cell_of("architecture/moe", subject), keep_going=False)
    for check in ("architecture/mla", "architecture/qk-norm", "length"):
        must_be_supported(cell_of(check, subject), keep_going=False)
    must_be_supported(cell_of("architecture/moe", subject), keep_going=True)


def test_start_is_always_asked() -> None:
    subject = profile(features={"start": NO})
    must_be_supported(cell_of("start/ready", subject), keep_going=False)
    assert exceptions_of(subject) == {}


def test_who_wants_to_know_may_try_it_all_the_same() -> None:
    subject = profile(features={"streaming": NO})
    must_be_supported(cell_of("streaming/answer", subject), keep_going=True)


@pytest.mark.parametrize("source", [{}, {"source": None}, {"source": " "}])
def test_a_no_without_a_source_is_a_profile_error(tmp_path: Path, source: dict[str, Any]) -> None:
    file = tmp_path / "mine.yaml"
    features = {"streaming": {"support": "no", "limit": "x", **source}}
    file.write_text(yaml.safe_dump({**DOCUMENT, "features": features}))
    with pytest.raises(UsageError) as caught:
        load_profile(file)
    assert str(file) in str(caught.value)
    assert "features.streaming: " in str(caught.value)
    assert "needs 'source'" in str(caught.value)


@pytest.mark.parametrize("name", ["simple-cpu-offload", "flexkv"])
def test_of_a_cache_that_hands_nothing_over_only_the_start_is_tried(name: str) -> None:
    subject = builtin_profiles()[name]
    tried = []
    for check in all_checks():
        try:
            must_be_supported(cell_of(check.id, subject), keep_going=False)
        except Refused:
            continue
        if check.applies(subject):
            tried.append(check.id)
    assert tried == ["start/ready"]
