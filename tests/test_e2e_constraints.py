"""Grammars, tool calls and reasoning on scripted pairs: healthy, and each check seen red."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.evidence import Outcome, Rung
from conformance.scripted.faults import tied
from conformance.scripted.suite import Ended, Running, Suite
from conformance.verdict import Verdict

pytestmark = pytest.mark.timeout(500)

GRAMMAR = ["--connector", "nixl", "--feature", "structured-output", "--keep-going"]
CALLS = ["--connector", "nixl", "--feature", "tool-calls", "--keep-going"]
THINKING = ["--connector", "nixl", "--feature", "reasoning", "--keep-going"]
OBEYS = ("the answer should obey its grammar", "text should match", "text should be")
CALLED = "calls, against the reference's"
TEXT = "content, against the reference's"
THOUGHT = "reasoning, against the reference's"
# By cell: what is broken, and words of the message that has to say so.
CALL_FAULTS = {
    "forced/required, unstreamed": ("prefill:parses_part", "HTTP 500 from the prefill server"),
    "forced/required, streamed": ("loses_delta", "should be JSON"),
    "forced/named, unstreamed": ("wrong_arguments", "arguments should obey the schema"),
    "forced/named, streamed": ("decode:names_again", "should not name it"),
    "token-ids/required": ("decode:raw_calls", CALLED),
    "token-ids/named": ("decode:late_grammar", CALLED),
    "auto/one call, unstreamed": ("raw_calls", "tools that were called"),
    "auto/one call, streamed": ("decode:loses_text", TEXT),
    "auto/two calls, unstreamed": ("loses_call", "tools that were called"),
    "auto/two calls, streamed": ("decode:loses_call", CALLED),
    "one-at-most/unstreamed": ("all_calls", "tools that were called"),
    "one-at-most/streamed": ("decode:all_calls", CALLED),
    "untouched/auto, no call, unstreamed": ("decode:loses_text", TEXT),
    "untouched/auto, no call, streamed": ("decode:loses_text", TEXT),
    "untouched/none, no call, unstreamed": ("decode:loses_text", TEXT),
    "untouched/none, no call, streamed": ("decode:empty_text", TEXT),
    "untouched/none, text of a call, unstreamed": ("calls_unasked", "tool calls="),
    "untouched/none, text of a call, streamed": ("decode:calls_unasked", CALLED),
    "result/unstreamed": ("decode:loses_text", TEXT),
    "result/streamed": ("decode:wrong_kv", TEXT),
}
THINKING_FAULTS = {
    "told-apart/unstreamed": ("decode:raw_thoughts", THOUGHT),
    "told-apart/streamed": ("loses_thoughts", "the reasoning is empty"),
    "told-apart/token ids": ("decode:loses_thoughts", THOUGHT),
    "off/unstreamed": ("thinks_anyway", "the reasoning="),
    "off/streamed": ("decode:thinks_anyway", THOUGHT),
    "off/token ids": ("prefill:thinks_anyway", THOUGHT),
    "then-json/unstreamed": ("eager_grammar", "the reasoning is empty"),
    "then-json/streamed": ("late_grammar", "the content should obey its schema"),
    "then-json/token ids": ("decode:eager_grammar", THOUGHT),
    "then-call/unstreamed": ("decode:raw_calls", TEXT),
    "then-call/streamed": ("loses_delta", "should be JSON"),
    "then-call/token ids": ("raw_calls", "tools that were called"),
}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    made = Suite(tmp_path_factory.mktemp("constraints"))
    yield made
    assert made.left_behind() == []


@pytest.fixture(scope="module")
def runs(suite: Suite) -> dict[str, Running]:
    """Every run of this file, started; each is waited for by the test that wants it."""
    faults = {
        "healthy": (("--feature", "tool-calls", *GRAMMAR), ""),
        "late": (GRAMMAR, "late_grammar"),
        "late-on-d": (GRAMMAR, "decode:late_grammar"),
        "free": (GRAMMAR, "free"),
        "mixed": ((*GRAMMAR, "--check", "*/side-by-side"), "decode:mixes_grammars"),
        "calls": (CALLS, _tied("tool-calls", CALL_FAULTS)),
        "thinking": (THINKING, ""),
        "thoughtless": (THINKING, _tied("reasoning", THINKING_FAULTS)),
    }
    return {
        name: suite.start(*arguments, fault=fault, name=name)
        for name, (arguments, fault) in faults.items()
    }


def _tied(check: str, faults: dict[str, tuple[str, str]]) -> str:
    return tied({f"{check}/{cell}": fault for cell, fault in faults.items()})


def _broken(ended: Ended, cell: str) -> set[Rung]:
    (proof,) = ended.cell("nixl", cell).evidence.proofs
    return {step.name for step in proof.steps if step.outcome is not Outcome.HELD}


def _says_why(message: str) -> bool:
    return message.startswith(OBEYS)


@pytest.mark.parametrize(("name", "cells"), [("healthy", 43), ("thinking", 12)])
def test_every_cell_of_a_healthy_pair_passes(
    runs: dict[str, Running], name: str, cells: int
) -> None:
    ended = runs[name].wait()
    (column,) = ended.report.connectors
    assert {c.check: c.message for c in column.cells if c.verdict is not Verdict.PASS} == {}
    assert len(column.cells) == cells
    assert {cell.evidence.reached for cell in column.cells} == {Rung.CONTROL}


def test_reasoning_has_a_deployment_of_its_own(runs: dict[str, Running]) -> None:
    starts = runs["thinking"].wait().report.servers
    assert [start.role for start in starts] == ["prefill", "decode", "reference"]
    for start in starts:
        assert "--reasoning-parser" in start.command
        assert start.command[start.command.index("--chat-template") + 1].endswith(".jinja")


def test_a_grammar_that_begins_late_everywhere_is_seen_by_the_grammar_itself(
    runs: dict[str, Running],
) -> None:
    """The reference does the same, so parity holds."""
    ended = runs["late"].wait()
    (column,) = ended.report.connectors
    for cell in column.cells:
        assert cell.verdict is Verdict.FAIL, cell.check
        assert _says_why(cell.message), (cell.check, cell.message)
        assert _broken(ended, cell.check) == set(), cell.check


def test_a_grammar_that_begins_late_on_d_is_seen_by_parity_too(runs: dict[str, Running]) -> None:
    ended = runs["late-on-d"].wait()
    (column,) = ended.report.connectors
    for cell in column.cells:
        assert cell.verdict is Verdict.FAIL, cell.check
        assert _broken(ended, cell.check) == {Rung.PARITY}, cell.check


def test_answers_without_a_grammar_are_incomplete_or_invalid(runs: dict[str, Running]) -> None:
    ended = runs["free"].wait()
    (column,) = ended.report.connectors
    for cell in column.cells:
        assert cell.verdict is Verdict.FAIL, cell.check
        incomplete = "finish_reason of a complete answer='length'" in cell.message
        assert incomplete or _says_why(cell.message), (cell.check, cell.message)


def test_grammars_that_mix_are_seen(runs: dict[str, Running]) -> None:
    ended = runs["mixed"].wait()
    cell = ended.cell("nixl", "structured-output/side-by-side")
    assert cell.verdict is Verdict.FAIL
    assert _broken(ended, cell.check) == {Rung.PARITY}


@pytest.mark.parametrize("cell", CALL_FAULTS)
def test_a_broken_tool_call_is_seen(runs: dict[str, Running], cell: str) -> None:
    found = runs["calls"].wait().cell("nixl", f"tool-calls/{cell}")
    assert found.verdict is Verdict.FAIL
    assert CALL_FAULTS[cell][1] in found.message


@pytest.mark.parametrize("cell", THINKING_FAULTS)
def test_broken_reasoning_is_seen(runs: dict[str, Running], cell: str) -> None:
    found = runs["thoughtless"].wait().cell("nixl", f"reasoning/{cell}")
    assert found.verdict is Verdict.FAIL
    assert THINKING_FAULTS[cell][1] in found.message


def test_no_check_was_forgotten(runs: dict[str, Running]) -> None:
    for name, faults in (("calls", CALL_FAULTS), ("thoughtless", THINKING_FAULTS)):
        (column,) = runs[name].wait().report.connectors
        assert {cell.check.partition("/")[2] for cell in column.cells} == set(faults)
