"""What a profile promises of a prompt, and how its placeholders become leases."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.placeholders import fill
from conformance.profile import Granularity

LEASES = {("port", "side"): "20123", ("dir", "store"): "/run/store", ("dir", "b"): "/run/b"}


@pytest.mark.parametrize(
    ("tokens", "promised"),
    [
        (0, 0),
        (1, 0),
        (15, 0),
        (16, 0),
        (17, 16),
        (31, 16),
        (32, 16),
        (33, 32),
        (48, 32),
        (49, 48),
    ],
)
def test_block_granularity_never_counts_the_block_of_the_last_token(
    tokens: int, promised: int
) -> None:
    assert Granularity.BLOCK.promised(tokens, 16) == promised


@pytest.mark.parametrize("tokens", [2, 15, 16, 17, 33])
def test_token_granularity_promises_every_token(tokens: int) -> None:
    assert Granularity.TOKEN.promised(tokens, 16) == tokens


def test_a_prompt_of_one_token_is_only_the_one_that_decode_computes() -> None:
    assert [Granularity.TOKEN.promised(tokens, 16) for tokens in (0, 1)] == [0, 0]


@settings(deadline=None, database=None, max_examples=50)
@given(st.sampled_from(Granularity), st.integers(0, 10_000), st.integers(1, 512))
def test_a_promise_is_never_more_than_the_prompt(kind: Granularity, tokens: int, size: int) -> None:
    assert 0 <= kind.promised(tokens, size) <= tokens


@settings(deadline=None, database=None, max_examples=50)
@given(st.integers(1, 10_000), st.integers(1, 512))
def test_a_block_promise_is_all_whole_blocks_below_the_last_token(tokens: int, size: int) -> None:
    promised = Granularity.BLOCK.promised(tokens, size)
    assert promised % size == 0
    assert promised < tokens <= promised + size
    assert promised <= Granularity.BLOCK.promised(tokens + 1, size)


def test_a_port_alone_becomes_a_number() -> None:
    assert fill("${port:side}", LEASES) == 20123
    assert type(fill("${port:side}", LEASES)) is int


def test_a_port_within_text_and_a_folder_stay_text() -> None:
    assert fill("tcp://h:${port:side}", LEASES) == "tcp://h:20123"
    assert fill("${dir:store}", LEASES) == "/run/store"
    assert fill("${dir:store}/x:${dir:b}", LEASES) == "/run/store/x:/run/b"


def test_values_are_filled_at_any_depth_into_a_copy() -> None:
    given_ = {"a": ["${port:side}", {"b": "${dir:b}"}], "n": 3, "t": True, "none": None}
    filled = fill(given_, LEASES)
    assert filled == {"a": [20123, {"b": "/run/b"}], "n": 3, "t": True, "none": None}
    assert given_["a"] == ["${port:side}", {"b": "${dir:b}"}]


def test_a_placeholder_without_a_lease_is_never_left_in_place() -> None:
    with pytest.raises(KeyError):
        fill({"a": "${dir:unknown}"}, LEASES)
