"""``start/without-daemons``: every way in which a server may take it that its daemon is absent."""

from __future__ import annotations

from typing import Any, cast

import pytest

from conformance.case import Case
from conformance.checks.test_start import WITHOUT_DAEMONS, test_absent_daemons_are_missed_at_start
from conformance.errors import CheckFailed, ServerStartError
from conformance.registry import PlannedCell

REFUSED = "ConnectionRefusedError: [Errno 111] Connection refused: 127.0.0.1:5555"


def tried(problem: ServerStartError | None) -> Case:
    case = Case(cast("PlannedCell", cast("Any", None)), [], start=lambda: problem)
    test_absent_daemons_are_missed_at_start(case)
    return case


def died(words: str | None) -> ServerStartError:
    return ServerStartError(f"it was: {words}", words, blames_connector=True)


@pytest.mark.parametrize(
    "words", [REFUSED, "RuntimeError: LMCache server tcp://127.0.0.1:5555 cannot be reached"]
)
def test_words_that_name_what_is_absent_pass(words: str) -> None:
    (fact,) = tried(died(words)).evidence.facts
    assert words in fact.seen


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (None, "it became ready"),
        (died(None), "should have ended within 150 s"),
        (died("RuntimeError: Initialize MooncakeDistributedStore failed."), "name what is absent"),
        (died("AttributeError: 'NoneType' object has no attribute 'connect'"), "what is absent"),
    ],
)
def test_readiness_a_hang_and_unclear_words_are_red(
    problem: ServerStartError | None, told: str
) -> None:
    with pytest.raises(CheckFailed, match=told):
        tried(problem)


def test_it_is_one_server_and_no_daemon() -> None:
    shape = WITHOUT_DAEMONS
    assert (shape.prefills, shape.decodes, shape.daemons) == (1, 0, False)
    assert shape.is_trial
