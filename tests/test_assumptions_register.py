"""The register of assumptions: what each says, and that what it names is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.assumptions.__main__ import listed
from conformance.assumptions.assumption import AREAS, Assumption, all_assumptions, assume

ROOT = Path(__file__).parent.parent
ALL = all_assumptions()


@pytest.mark.parametrize("known", ALL, ids=lambda known: known.id)
def test_what_an_assumption_names_is_there(known: Assumption) -> None:
    missing = [file for file in known.relied_on if not (ROOT / "conformance" / file).is_file()]
    assert missing == []
    assert known.relied_on
    assert known.says[0] in "`ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    assert known.says.endswith(".")
    assert known.source


@pytest.mark.parametrize("known", ALL, ids=lambda known: known.id)
def test_it_rests_on_what_was_tried_before_it(known: Assumption) -> None:
    before = [other.id for other in ALL[: ALL.index(known)]]
    assert set(known.needs) <= set(before)


def test_ids_are_their_areas() -> None:
    areas = [known.id.partition("/")[0].replace("-", "_") for known in ALL]
    assert list(dict.fromkeys(areas)) == list(AREAS)
    assert len({known.id for known in ALL}) == len(ALL)


def test_one_without_a_sentence_is_none() -> None:
    with pytest.raises(TypeError, match="needs a docstring"):
        assume("server/silent", source="nowhere", relied_on=())(lambda plain: None)


def test_the_page_lists_all() -> None:
    page = (ROOT / "docs" / "assumptions.md").read_text(encoding="utf-8")
    assert page.endswith(listed()), "docs/assumptions.md: see python -m conformance.assumptions"
