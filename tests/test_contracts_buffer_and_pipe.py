"""The buffer and pipe contracts: green on right ones, red on the clause that a wrong one breaks."""

from __future__ import annotations

import pytest
from contract_kill import Faults, clauses, messages, red, tried

from conformance.contract_results import ClauseResult

PIPES: Faults = {
    "PipeReorders": ["order_is_kept", "none_travels"],
    "PipeLosesNone": ["none_travels"],
    "PipeChangesDtype": ["dtype_shape_and_values_are_kept"],
    "PipeReceiveDoesNotWait": ["receiving_waits_for_a_tensor"],
    "PipeCloseHangs": ["close_returns"],
}
NO_MATCH = "selection_waits_for_a_match"
GONE = "selection_removes_the_entry"
ITS_OWN = "selection_takes_the_matching_entry"
CLOSE_IDS = "close_token_ids_are_told_apart"
PREFIX = "prefix_within_roi_matches"
FULL = "full_buffer_makes_insert_wait"
BUFFERS: Faults = {
    "BufferDoesNotRemove": [GONE, "none_selects_any", FULL],
    "BufferSelectsOldest": [ITS_OWN, NO_MATCH, PREFIX, CLOSE_IDS, FULL],
    "BufferSelectionDoesNotWait": [NO_MATCH, GONE, CLOSE_IDS],
    "BufferIgnoresRoi": [PREFIX],
    "BufferTakesCloseTokensForEqual": [CLOSE_IDS],
    "BufferRefusesNone": ["none_selects_any"],
    "BufferSwapsKeyAndValue": ["selection_is_what_was_inserted"],
    "BufferUnbounded": [FULL],
    "BufferCloseHangs": ["close_returns"],
}


@pytest.fixture(scope="module")
def results() -> list[ClauseResult]:
    return tried("contract_faults/faulty_pipes_and_buffers.py")


@pytest.mark.parametrize("name", ["RightPipe", "RightBuffer"])
def test_right_implementations_are_green(results: list[ClauseResult], name: str) -> None:
    assert red(results, name) == set(), messages(results, name)


@pytest.mark.parametrize("name", [*PIPES, *BUFFERS])
def test_wrong_implementations_are_red_where_they_are_wrong(
    results: list[ClauseResult], name: str
) -> None:
    wanted = {**PIPES, **BUFFERS}[name]
    assert red(results, name) == set(wanted), messages(results, name)


def test_an_insert_that_blocks_is_red_wherever_something_is_inserted(
    results: list[ClauseResult],
) -> None:
    assert red(results, "BufferInsertBlocks") == clauses(results, "RightBuffer")
    assert "insert([40, 41, 42, 43, 44, 45, 46, 47]) did not return" in messages(
        results, "BufferInsertBlocks"
    )


@pytest.mark.parametrize(
    ("right", "faults"),
    [("RightPipe", PIPES), ("RightBuffer", {**BUFFERS, "": ["insert_does_not_wait"]})],
)
def test_every_clause_has_been_red(results: list[ClauseResult], right: str, faults: Faults) -> None:
    assert {clause for reds in faults.values() for clause in reds} == clauses(results, right)


def test_every_clause_is_a_requirement(results: list[ClauseResult]) -> None:
    assert all(result.requirement.endswith(".") for result in results)
