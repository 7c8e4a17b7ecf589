"""Parity: the reference's answer, a near-tie, or another answer."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from conformance.answer import Answer
from conformance.parity import TOLERANCE, compare

FLOAT32 = TOLERANCE["float32"]


def answer(*ids: int, logprobs: tuple[float, ...] | None = None, margin: float = 1.0) -> Answer:
    return Answer(
        text="",
        token_ids=ids,
        logprobs=tuple(-0.5 for _ in ids) if logprobs is None else logprobs,
        margins=(margin,) * len(ids),
        finish_reason="length",
        prompt_token_ids=(),
        usage={},
    )


REFERENCE = answer(1, 2, 3, 4)


def test_the_same_answer_is_equal() -> None:
    found = compare(REFERENCE, REFERENCE, "float32")
    assert found.equal
    assert (found.compared, found.first_difference, found.max_logprob_gap) == (4, None, 0.0)
    assert "4 tokens equal" in found.describe()


def test_a_logprob_may_differ_within_the_tolerance_of_its_dtype() -> None:
    close = answer(1, 2, 3, 4, logprobs=(-0.5, -0.5 - FLOAT32 / 2, -0.5, -0.5))
    found = compare(REFERENCE, close, "float32")
    assert found.equal
    assert found.max_logprob_gap == pytest.approx(FLOAT32 / 2)


@pytest.mark.parametrize("place", range(4))
def test_a_logprob_gap_above_the_tolerance_is_a_difference(place: int) -> None:
    logprobs = [-0.5] * 4
    logprobs[place] -= 3 * FLOAT32
    found = compare(REFERENCE, answer(1, 2, 3, 4, logprobs=tuple(logprobs)), "float32")
    assert not found.equal
    assert found.first_difference is None
    assert found.figures()["max_logprob_gap_nat"] == pytest.approx(3 * FLOAT32)


def test_the_tolerance_is_the_dtypes() -> None:
    off = answer(1, 2, 3, 4, logprobs=(-0.5, -0.5, -0.5, -0.6))
    assert not compare(REFERENCE, off, "float32").equal
    assert not compare(REFERENCE, off, "float16").equal
    assert compare(REFERENCE, off, "bfloat16").equal
    assert compare(REFERENCE, off, "some-new-dtype").tolerance == TOLERANCE["auto"]


def test_another_token_is_a_difference() -> None:
    found = compare(REFERENCE, answer(1, 2, 9, 4), "float32")
    assert not found.equal
    assert (found.first_difference, found.near_tie, found.compared) == (2, False, 4)
    assert found.describe().startswith("difference at token 2 of 4")


def test_another_token_where_the_reference_wavered_is_a_near_tie() -> None:
    wavering = replace(REFERENCE, margins=(1.0, 1.0, FLOAT32 / 2, 1.0), seconds=(0, 0, 9, 0))
    found = compare(wavering, answer(1, 2, 9, 4), "float32")
    assert found.equal
    assert found.near_tie
    assert found.describe().startswith("near-tie at token 2 of 4")


def test_only_the_references_margin_at_the_first_difference_excuses() -> None:
    wavering = replace(REFERENCE, margins=(0.0, 0.0, 1.0, 0.0))
    assert not compare(wavering, answer(1, 2, 9, 4), "float32").equal
    assert not compare(REFERENCE, answer(1, 2, 9, 4, margin=0.0), "float32").equal


def test_a_near_tie_does_not_excuse_logprobs_before_it() -> None:
    wavering = replace(REFERENCE, margins=(1.0, 1.0, 0.0, 1.0), seconds=(0, 0, 9, 0))
    off = answer(1, 2, 9, 4, logprobs=(-0.5, -0.9, -0.5, -0.5))
    assert not compare(wavering, off, "float32").equal


def test_logprobs_after_a_near_tie_are_not_compared() -> None:
    wavering = replace(REFERENCE, margins=(1.0, 1.0, 0.0, 1.0), seconds=(0, 0, 9, 0))
    off = answer(1, 2, 9, 8, logprobs=(-0.5, -0.5, -7.0, -7.0))
    assert compare(wavering, off, "float32").equal


@pytest.mark.parametrize("margins", [(), (math.inf,) * 4])
def test_an_unknown_margin_excuses_nothing(margins: tuple[float, ...]) -> None:
    found = compare(replace(REFERENCE, margins=margins), answer(1, 2, 9, 4), "float32")
    assert not found.equal


@pytest.mark.parametrize("ids", [(1, 2, 3), (1, 2, 3, 4, 5)])
def test_another_length_is_a_difference(ids: tuple[int, ...]) -> None:
    found = compare(REFERENCE, answer(*ids), "float32")
    assert not found.equal
    assert found.first_difference is None
    assert found.describe() == f"{len(ids)} tokens, but should be 4"


@pytest.mark.parametrize(
    ("reference", "seen"), [(answer(), answer()), (REFERENCE, answer()), (answer(), REFERENCE)]
)
def test_nothing_to_compare_is_not_equal(reference: Answer, seen: Answer) -> None:
    found = compare(reference, seen, "float32")
    assert not found.equal
    assert found.compared == 0
    assert "nothing to compare" in found.describe()


@pytest.mark.parametrize(
    "seconds", [(0, 0, 8, 0), (0, 0, -1, 0), ()], ids=["other", "nameless", "none"]
)
def test_only_the_second_likeliest_token_may_stand_in_for_the_first(
    seconds: tuple[int, ...],
) -> None:
    wavering = replace(REFERENCE, margins=(1.0, 1.0, 0.0, 1.0), seconds=seconds)
    assert not compare(wavering, answer(1, 2, 9, 4), "float32").equal
