"""Stopping: an answer ends where it would on one server, even if P's one token already ends it.

A prefill that ends with reason "stop" instead of "length" is finished for connectors that look for
the one and not for the other: they hand nothing over, and D waits for ever or recomputes
(vllm#46008, Mooncake and MoRIIO in vLLM 0.32.0; vllm-ascend#13870).
"""

from collections.abc import Callable

from conformance import expect
from conformance.case import Case
from conformance.client import Body
from conformance.ladder import PROVEN, Climbed
from conformance.learned import end_of_sequence, first_token, pieces, sought, without
from conformance.pair import Ask, completion
from conformance.registry import check

MODES = ("unstreamed", "streamed")
LAST = 6  # the token whose text a stop string ends in


def _ask(case: Case, what: str, body: Callable[[int], Body]) -> Ask:
    ask = Ask(f"completion that ends {what}", "completions", body)
    return ask.streamed() if case.name.split(", ")[-1] == "streamed" else ask


def _plain(case: Case, variant: int, attempt: int = 0) -> Body:
    return completion(case.ids(2 * case.block + 5, variant, attempt))


@check(
    "sampling/stop-string",
    feature="sampling",
    cases=tuple(
        f"{kind}, {mode}" for kind in ("within", "across tokens", "included") for mode in MODES
    ),
    core_cases=("across tokens, streamed",),
)
def test_a_stop_string_ends_the_answer(case: Case) -> None:
    """The answer ends before a stop string, or after it where it is to be included.

    One that lies across tokens is still held back from a client that streams.
    """
    kind = case.name.split(",")[0]

    def body(variant: int) -> Body:
        made = sought(
            lambda attempt: _with_stop(case, _plain(case, variant, attempt), kind != "within"),
            lambda found: "stop" in found,
            "is answered with a text that a stop string can cut",
        )
        return {**made, "include_stop_str_in_output": kind == "included"}

    climbed = case.prove(_ask(case, f"at a stop string, {kind}", body))
    _stopped_at(case, climbed, *body(PROVEN)["stop"])
    plain = "".join(pieces(case, without(body(PROVEN), "stop", "include_stop_str_in_output")))
    (stop,) = body(PROVEN)["stop"]
    until = plain.index(stop) + (len(stop) if kind == "included" else 0)
    expect.equal(climbed.answer.text, plain[:until], f"text until {stop!r}")


@check("sampling/stop-token", feature="sampling", cases=MODES, core_cases=("unstreamed",))
def test_a_stop_token_ends_the_answer(case: Case) -> None:
    """The answer ends with the first of stop_token_ids that is sampled."""

    def body(variant: int) -> Body:
        made = _plain(case, variant)
        said = case.pair.expected("completions", made).token_ids
        return {**made, "stop_token_ids": [said[len(said) // 2]]}

    climbed = case.prove(_ask(case, f"at a stop token, {case.name}", body))
    (stop,) = body(PROVEN)["stop_token_ids"]
    _stopped_at(case, climbed, stop)
    expect.equal(climbed.answer.token_ids[-1:], (stop,), "last token of the answer")


@check(
    "sampling/first-token-stops",
    feature="sampling",
    cases=tuple(
        f"{kind}, {mode}"
        for kind in ("stop token", "stop string", "end of sequence")
        for mode in MODES
    ),
    core_cases=("stop token, unstreamed", "end of sequence, streamed"),
)
def test_a_prefill_that_stops_hands_over(case: Case) -> None:
    """P's one token ends the answer, and P hands over all the same: D ends it likewise, in time."""
    kind = case.name.split(",")[0]

    def body(variant: int) -> Body:
        return sought(
            lambda attempt: _ended_at_once(case, _plain(case, variant, attempt), kind),
            lambda made: made.get("stop") != [],
            "is answered with a first token that has a text",
        )

    climbed = case.prove(_ask(case, f"at its first token, {kind}", body))
    expect.equal(climbed.legs.prefill.finish_reason, "stop", "finish_reason of prefill")
    expect.equal(climbed.answer.finish_reason, "stop", "finish_reason of decode")
    expect.equal(climbed.answer.text, "", "text of an answer that ends at once")
    expect.equal(climbed.answer.token_ids, climbed.expected.token_ids, "tokens of the answer")


def _ended_at_once(case: Case, body: Body, kind: str) -> Body:
    """The body with what makes its first token the last one."""
    if kind == "stop token":
        return {**body, "stop_token_ids": [first_token(case, body)]}
    if kind == "stop string":
        return {**body, "stop": pieces(case, body)[:1]}
    return {**body, "logit_bias": {str(end_of_sequence(case)): 100.0}}


def _with_stop(case: Case, body: Body, across: bool) -> Body:
    """The body with a stop string out of its answer, or as it was if that has none to give."""
    texts = pieces(case, body)[: LAST + 1]
    if len(texts) <= LAST or min(map(len, texts[-2:])) < 3:
        return body
    stop = texts[-2][-2:] + texts[-1][:2] if across else texts[-1][1:3]
    whole = "".join(texts)
    once = whole.index(stop) >= len(whole) - len(texts[-1]) - 2
    return {**body, "stop": [stop]} if once else body


def _stopped_at(case: Case, climbed: Climbed, stop: str | int) -> None:
    """``finish_reason`` and ``stop_reason`` are those of the first choice, streamed or not."""
    streamed = climbed.legs.transcript
    choices = (
        [event["choices"][0] for event in streamed.choice_events]
        if streamed
        else climbed.answer.raw["choices"]
    )
    seen = choices[-1].get("finish_reason"), choices[-1].get("stop_reason")
    case.saw("finish_reason and stop_reason", seen)
    expect.equal(seen, ("stop", stop), "finish_reason and stop_reason")
