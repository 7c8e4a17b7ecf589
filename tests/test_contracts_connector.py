"""The connector contract: green on a right connector, red on the clause that a wrong one breaks.

Needs vLLM beside the suite, as in the engine's environment::

    pytest tests/test_contracts_connector.py
"""

from __future__ import annotations

import importlib.util

import pytest
from contract_kill import Faults, clauses, messages, red, tried

from conformance.contract_results import ClauseResult
from conformance.contract_subject import NEED_A_FIND

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("vllm") is None,
        reason="vLLM is not installed in this Python; run it in the engine's environment",
    ),
    pytest.mark.timeout(600),
]

BIT_FOR_BIT = "saved_kv_is_loaded_bit_for_bit"
IN_TWO_STEPS = "kv_of_a_prompt_in_two_steps_is_loaded_bit_for_bit"
RESUMED = "resumed_request_has_its_kv_bit_for_bit"
FAULTS: Faults = {
    "ConnectorNegativeMatch": ["match_count_is_never_negative"],
    "ConnectorClaimsWholePrompt": ["match_count_leaves_the_last_token"],
    # Decode's other request is claimed too, fails to load and leaves its blocks to the next.
    "ConnectorClaimsUnknownPrompts": ["unknown_prompt_matches_nothing", BIT_FOR_BIT],
    "ConnectorZeroIsAsynchronous": ["zero_matches_are_never_asynchronous"],
    "ConnectorAskingStartsALoad": ["asking_changes_nothing"],
    "ConnectorMutatesSchedulerOutput": ["metadata_builder_leaves_scheduler_output_alone"],
    "ConnectorStateNotReset": ["metadata_builder_resets_its_state"],
    "ConnectorMetadataCannotTravel": ["metadata_can_be_pickled"],
    "ConnectorDropsALayer": [BIT_FOR_BIT, IN_TWO_STEPS, RESUMED],
    "ConnectorShiftsByOneToken": [BIT_FOR_BIT, IN_TWO_STEPS, RESUMED],
    "ConnectorSavesFirstStep": [IN_TWO_STEPS],
    "ConnectorWritesForeignBlocks": ["load_touches_only_its_blocks"],
    "ConnectorSwallowsLoadErrors": ["failed_load_is_reported"],
    "ConnectorLoadsWhereItDid": [RESUMED],
    "ConnectorNeverReportsRelease": ["promised_release_is_reported_exactly_once"],
    "ConnectorShutdownOnlyOnce": ["shutdown_may_be_called_twice"],
}
# These never come up, so that nothing else can be tried on them: what still passes.
STILLBORN = {
    "ConnectorTakesTwoArguments": {"no_abstract_method_is_left"},
    "ConnectorLeavesAbstract": set[str](),
    "ConnectorRefusesCaches": {
        "no_abstract_method_is_left",
        "constructor_takes_three_arguments",
        "shutdown_may_be_called_twice",
    },
}
NAMED = {
    "ConnectorTakesTwoArguments": "fail constructor_takes_three_arguments: ",
    "ConnectorLeavesAbstract": "fail no_abstract_method_is_left: ",
    "ConnectorRefusesCaches": "fail both_instances_start: ",
}


@pytest.fixture(scope="module")
def results() -> list[ClauseResult]:
    return tried("contract_faults/faulty_connectors.py")


@pytest.mark.parametrize("name", ["RightConnector", "LateConnector"])
def test_right_connectors_are_green(results: list[ClauseResult], name: str) -> None:
    assert red(results, name) == set(), messages(results, name)


@pytest.mark.parametrize("name", FAULTS)
def test_wrong_connectors_are_red_where_they_are_wrong(
    results: list[ClauseResult], name: str
) -> None:
    assert red(results, name) == set(FAULTS[name]), messages(results, name)


@pytest.mark.parametrize("name", STILLBORN)
def test_connectors_that_never_come_up_fail_the_clause_that_says_why(
    results: list[ClauseResult], name: str
) -> None:
    assert clauses(results, name) - red(results, name) == STILLBORN[name]
    assert NAMED[name] in messages(results, name)


def test_every_clause_has_been_red(results: list[ClauseResult]) -> None:
    seen = {clause for reds in FAULTS.values() for clause in reds}
    seen |= {line.split()[1].rstrip(":") for line in NAMED.values()}
    assert seen == clauses(results, "RightConnector")


def test_every_clause_is_a_requirement(results: list[ClauseResult]) -> None:
    assert all(result.requirement.endswith(".") for result in results)


def test_clauses_that_a_profile_may_leave_untried_exist(results: list[ClauseResult]) -> None:
    assert set(NEED_A_FIND) < clauses(results, "RightConnector")
