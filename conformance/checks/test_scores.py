"""Log-probabilities and echo: what a client is told beside the text is the reference's too.

Log-probabilities of the prompt come from computing it, so KV that was transferred has none: decode
has to leave it aside and compute (vllm#57269). Where it did not, it crashed or answered with junk
(vllm#50792), and P kept blocks that nobody fetched.
"""

from collections.abc import Callable

from conformance import expect
from conformance.case import Case
from conformance.client import Body, Endpoint
from conformance.detours import prove_or_recomputed
from conformance.likeliest import Scores, differences, likeliest, of_prompt
from conformance.pair import Ask, chat, completion
from conformance.parity import compare
from conformance.registry import check

MOST = 5
ENDPOINTS = ("completions", "chat")
PROMPT_IS_COMPUTED = (
    "log-probabilities of prompt tokens come from computing them, so no cached KV is taken "
    "(vLLM 0.32.0, skip_reading_prefix_cache in v1/core/sched/scheduler.py; vllm#57269)"
)


def _body(case: Case, variant: int) -> Body:
    if case.name == "chat":
        return chat(case.text(2 * case.block, variant))
    return completion(case.ids(2 * case.block + 5, variant))


def _ask(case: Case, what: str, body: Callable[[int], Body]) -> Ask:
    endpoint: Endpoint = "chat/completions" if case.name == "chat" else "completions"
    return Ask(f"{case.name} with {what}", endpoint, body)


@check("sampling/logprobs", feature="sampling", cases=ENDPOINTS, core_cases=("chat",))
def test_the_likeliest_tokens_are_the_references(case: Case) -> None:
    """Of each token of the answer, the five likeliest and their log-probabilities are right."""
    asked = {"top_logprobs": MOST} if case.name == "chat" else {"logprobs": MOST}
    ask = _ask(case, "the likeliest tokens", lambda variant: {**_body(case, variant), **asked})
    climbed = case.prove(ask)
    found = compare(climbed.expected, climbed.answer, case.pair.model.dtype)
    upto = found.compared if found.first_difference is None else found.first_difference
    wanted, seen = likeliest(climbed.expected)[:upto], likeliest(climbed.answer)[:upto]
    expect.not_empty(seen, "the list of likeliest tokens")
    expect.true(min(map(_size, seen)) >= MOST, f"likeliest tokens should be {MOST}", seen[0])
    _must_be_alike(case, "likeliest tokens", wanted, seen)


@check("sampling/prompt-logprobs", feature="sampling", level="extended", cases=ENDPOINTS)
def test_the_prompts_log_probabilities_are_right(case: Case) -> None:
    """Log-probabilities of the prompt are the reference's, though decode has to compute it anew."""
    ask = _ask(
        case,
        "log-probabilities of the prompt",
        lambda variant: {**_body(case, variant), "prompt_logprobs": 2},
    )
    climbed = prove_or_recomputed(case, ask, PROMPT_IS_COMPUTED)
    seen = of_prompt(climbed.answer)
    expect.equal(len(seen), climbed.expected.prompt_tokens, "places in prompt_logprobs")
    _must_be_alike(case, "prompt_logprobs", of_prompt(climbed.expected), seen)


@check(
    "sampling/echo", feature="sampling", level="extended", cases=("text", "with log-probabilities")
)
def test_the_prompt_is_echoed(case: Case) -> None:
    """With echo, the prompt comes before its answer, with its log-probabilities if asked for."""
    if case.name == "text":
        _echoes_text(case)
        return
    ask = _ask(case, "echo", lambda variant: {**_body(case, variant), "echo": True})
    climbed = prove_or_recomputed(case, ask, PROMPT_IS_COMPUTED)
    expected, seen = likeliest(climbed.expected), likeliest(climbed.answer)
    wanted = climbed.expected.prompt_tokens + len(climbed.expected.token_ids)
    expect.equal(len(seen), wanted, "places with log-probabilities, prompt and answer")
    _must_be_alike(case, "log-probabilities of prompt and answer", expected, seen)


def _echoes_text(case: Case) -> None:
    """Text comes back only where token ids do not, so it is asked for once more by itself."""

    def body(variant: int) -> Body:
        return {
            **completion(case.text(2 * case.block, variant)),
            "logprobs": None,
            "echo": True,
        }

    ask = _ask(case, "echo", body)
    case.prove(ask)
    plain = {**body(3), "return_token_ids": False}
    wanted = case.pair.expected(ask.endpoint, plain).text
    seen = case.pair.both_legs(ask, plain).decode.text
    case.saw("echoed text", seen[-200:])
    expect.true(seen.startswith(plain["prompt"]), "the answer should begin with its prompt", seen)
    expect.equal(seen, wanted, "text with echo")


def _must_be_alike(case: Case, what: str, wanted: list[Scores], seen: list[Scores]) -> None:
    found = differences(wanted, seen, case.pair.model.dtype)
    case.saw(f"{what}, places that differ from the reference's", found[:5])
    expect.equal(found[:3], [], f"places of {what} that differ from the reference's")


def _size(scores: Scores) -> int:
    return len(scores or ())
