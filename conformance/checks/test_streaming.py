"""Streaming: a client that streams must see the same answer, in order, to its end."""

from conformance import expect
from conformance.answer import Json, Transcript
from conformance.case import Case
from conformance.pair import Ask, chat, completion
from conformance.registry import check

ENDPOINTS = ("chat", "completions")


def _ask(case: Case) -> Ask:
    length = 2 * case.block + 5
    if case.name == "chat":
        return Ask(
            "chat with usage",
            "chat/completions",
            lambda variant: chat(case.text(length, variant), max_tokens=16),
        )
    return Ask(
        "completion with usage",
        "completions",
        lambda variant: completion(case.ids(length, variant), max_tokens=16),
    )


@check("streaming/answer", feature="streaming", cases=ENDPOINTS)
def test_chunks_add_up_to_the_unstreamed_answer(case: Case) -> None:
    """The chunks of a streamed answer add up to the unstreamed answer, token by token."""
    climbed = case.prove(_ask(case).streamed())
    expect.equal(climbed.answer.token_ids, climbed.expected.token_ids, "token ids of the chunks")
    expect.equal(climbed.answer.text, climbed.expected.text, "text of the chunks")
    expect.equal(
        climbed.answer.finish_reason, climbed.expected.finish_reason, "finish_reason of the chunks"
    )
    _one_role(climbed.transcript, case.name == "chat")
    _one_finish_reason(climbed.transcript)
    _ordered(climbed.transcript)


@check("streaming/usage", feature="streaming", cases=ENDPOINTS)
def test_usage_comes_last_and_is_right(case: Case) -> None:
    """With include_usage, one last chunk without choices carries the unstreamed usage."""
    plain = _ask(case)
    ask = Ask(
        plain.subject,
        plain.endpoint,
        lambda variant: {**plain.body(variant), "stream_options": {"include_usage": True}},
        stream=True,
    )
    climbed = case.prove(ask)
    events = climbed.transcript.events
    with_usage = [number for number, event in enumerate(events) if event.get("usage")]
    expect.equal(with_usage, [len(events) - 1], "positions of chunks with usage")
    expect.equal(events[-1].get("choices"), [], "choices of the usage chunk")
    wanted = climbed.expected.counted
    seen = {name: events[-1]["usage"].get(name) for name in wanted}
    case.saw("usage", seen)
    expect.equal(seen, wanted, "streamed usage")


def _one_role(transcript: Transcript, is_chat: bool) -> None:
    roles = [
        (number, event["choices"][0]["delta"]["role"])
        for number, event in enumerate(transcript.choice_events)
        if event["choices"][0].get("delta", {}).get("role")
    ]
    expect.equal(roles, [(0, "assistant")] if is_chat else [], "chunks that carry a role")


def _one_finish_reason(transcript: Transcript) -> None:
    pieces = [event["choices"][0] for event in transcript.choice_events]
    at = [number for number, piece in enumerate(pieces) if piece.get("finish_reason")]
    expect.equal(at, [len(pieces) - 1], "positions of chunks with a finish_reason")


def _ordered(transcript: Transcript) -> None:
    expect.not_empty(transcript.choice_events, "the stream")
    expect.true(transcript.done, "the stream should end with [DONE]", "it ended without")
    expect.equal(transcript.after_done, 0, "chunks after [DONE]")
    expect.equal(len(_values(transcript, "id")), 1, "different ids in one stream")
    expect.equal(len(_values(transcript, "created")), 1, "different creation times in one stream")
    indexes = {event["choices"][0].get("index") for event in transcript.choice_events}
    expect.equal(indexes, {0}, "choice indexes")


def _values(transcript: Transcript, key: str) -> set[Json]:
    return {event.get(key) for event in transcript.events}  # type: ignore[misc]
