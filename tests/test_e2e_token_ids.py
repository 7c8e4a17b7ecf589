"""Token-ID reuse on scripted pairs that are broken in a way that each check has to see."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.checks.test_token_id_reuse import INVALID
from conformance.checks.test_token_id_reuse_chat import CONVERSATIONS
from conformance.scripted.faults import tied
from conformance.scripted.suite import Ended, Suite, asking
from conformance.verdict import Verdict

pytestmark = pytest.mark.timeout(500)

# The prompt of the check that appends a token to one of two blocks of 16.
LONGER = 2 * 16 + 1
NOT_REFUSED = "HTTP status for {} ids=200, but should be 400"
# Faults by the cell that has to see them, and what its message says.
FAULTS = {
    **{
        f"token-ids/same-answer/{mode}": ("decode:claim", "causality: the answer is unchanged")
        for mode in ("unstreamed", "streamed")
    },
    **{
        f"token-ids/decide-the-prompt/{mode}": ("decode:renders", "should be that of the ids")
        for mode in ("unstreamed", "streamed")
    },
    "token-ids/messages-required": (
        "decode:no_messages",
        "HTTP status without messages=200, but should be 400",
    ),
    **{
        f"token-ids/invalid/{kind}, {mode}": ("decode:lax_ids", NOT_REFUSED.format(kind))
        for kind in INVALID
        for mode in ("unstreamed", "streamed")
    },
    **{
        f"token-ids/conversation/{name}": ("decode:renders", "prompt_tokens of decode=")
        for name in CONVERSATIONS
        if name != "truncated"
    },
    "token-ids/conversation/truncated": (
        "prefill:drop_truncate_prompt_tokens",
        "prompt_token_ids of prefill",
    ),
    **{
        f"token-ids/template-arguments/{name}": ("decode:renders", "prompt_tokens of decode=")
        for name in ("enable_thinking", "tools")
    },
    "token-ids/echo": ("decode:echo_ids", "with echo, the messages should decide"),
    "token-ids/too-long/unstreamed": ("decode:takes_long", "HTTP status of too many token ids=200"),
    "token-ids/too-long/streamed": ("decode:takes_long", "HTTP status of too many token ids=200"),
    "token-ids/too-long/to be truncated": (
        "decode:cuts_ids",
        "HTTP status of too many token ids=200",
    ),
    "token-ids/other-words": ("decode:renders", "the answer should be that to the ids"),
    "token-ids/first-token-appended/within a block": (
        "decode:renders",
        "the answer should be that to the ids",
    ),
    "token-ids/first-token-appended/at the end of a block": (
        f"decode:die_on_length:{LONGER}",
        "the decode server died",
    ),
    "token-ids/completions": ("decode:ids_in_completions", "should be that to the prompt"),
    "token-ids/cache-salt": ("decode:no_salt", "local_cache_hit with the salt 'another'"),
}
# Others that some of these cells have to see.
MORE = {
    "token-ids/messages-required": ("decode:vague", "the error should name messages"),
    "token-ids/invalid/negative, unstreamed": ("decode:vague", "should name prompt_token_ids"),
    "token-ids/template-arguments/enable_thinking": (
        "thinks_anyway",
        "the template should render another prompt",
    ),
    "token-ids/conversation/system prompt": ("decode:wrong_kv", "should be that of the ids"),
    "token-ids/echo": ("decode:drop_echo", "text with echo"),
    "token-ids/too-long/unstreamed": ("decode:vague", "the error should name the model's context"),
    "token-ids/other-words": ("decode:recompute", "external_kv_transfer should be at least"),
}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    made = Suite(tmp_path_factory.mktemp("ids"))
    yield made
    assert made.left_behind() == []


@pytest.fixture(scope="module")
def runs(suite: Suite) -> dict[str, Ended]:
    """Two runs with faults, at the same time."""
    started = {
        name: suite.start(*_chosen(faults), fault=tied(faults), name=name)
        for name, faults in {"faults": FAULTS, "more": MORE}.items()
    }
    return {name: run.wait() for name, run in started.items()}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_seen(runs: dict[str, Ended], name: str) -> None:
    _is_seen(runs["faults"], name, FAULTS[name][1])


@pytest.mark.parametrize("name", MORE)
def test_each_other_fault_is_seen(runs: dict[str, Ended], name: str) -> None:
    _is_seen(runs["more"], name, MORE[name][1])


def _chosen(faults: dict[str, tuple[str, str]]) -> list[str]:
    return ["--connector", "nixl", "--keep-going", *asking(faults)]


def _is_seen(run: Ended, name: str, message: str) -> None:
    cell = run.cell("nixl", name)
    assert cell.verdict in (Verdict.FAIL, Verdict.DEGRADED), (cell.verdict, cell.message)
    assert message in cell.message
