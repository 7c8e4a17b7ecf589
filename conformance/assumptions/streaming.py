"""Streams: what comes in which chunk, and what ends them."""

from __future__ import annotations

from conformance import expect
from conformance.answer import Answer, Transcript
from conformance.assumptions.assumption import ASKS, CHAT, COMPLETIONS, COUNTS, assume
from conformance.assumptions.plain import Plain
from conformance.parity import compare

COMPLETED = (*COUNTS, "answers/repeatable")
CHATTED = (*ASKS, "token-ids/chat", "scores/chat")
LEANS = ("events.py", "answer.py", "client.py", "checks/test_streaming.py")


@assume("streaming/completions", source=COMPLETIONS, relied_on=LEANS, needs=COMPLETED)
def _completions(plain: Plain) -> object:
    """A streamed completion is ``data:`` chunks with text, token ids and log-probabilities that
    add up to the unstreamed answer, the prompt's ids in the first, and ``[DONE]`` at the end."""
    return _add_up(plain.streamed, plain.again.answer)


@assume("streaming/chat", source=CHAT, relied_on=(*LEANS, "chat_message.py"), needs=CHATTED)
def _chat(plain: Plain) -> object:
    """A streamed chat begins with a chunk that has the role and the prompt's ids and no token,
    its deltas add up to the unstreamed answer, and ``[DONE]`` ends it."""
    transcript = plain.streamed_chat
    first = transcript.events[0]
    delta = first["choices"][0]["delta"]
    expect.equal(delta.get("role"), "assistant", "role in the first chunk")
    expect.equal(first["choices"][0].get("token_ids") or [], [], "token ids in the first chunk")
    return _add_up(transcript, plain.chat)


@assume(
    "streaming/usage",
    source=f"{COMPLETIONS}, {CHAT}",
    relied_on=("answer.py", "checks/test_usage.py", "checks/test_streaming.py"),
    needs=(*COUNTS, "token-ids/chat"),
)
def _usage(plain: Plain) -> object:
    """Usage is told in a last chunk without choices if it is asked for, in every chunk if that
    is asked for, and else in none."""
    expect.equal(plain.streamed.usages, [], "usage in a stream that was not asked for it")
    events = plain.streamed_chat.events
    without = [number for number, event in enumerate(events) if not event.get("usage")]
    expect.equal(without, [], "chunks without usage, though all should have it")
    last = events[-1]
    expect.equal(last["choices"], [], "choices of the last chunk")
    seen = {name: last["usage"].get(name) for name in ("prompt_tokens", "completion_tokens")}
    wanted = {
        "prompt_tokens": len(plain.chat.prompt_token_ids),
        "completion_tokens": len(plain.chat.token_ids),
    }
    expect.equal(seen, wanted, "usage of the last chunk")
    return seen


def _add_up(transcript: Transcript, whole: Answer) -> dict[str, object]:
    expect.true(transcript.done, "the stream should end with [DONE]", "it ended without")
    expect.equal(transcript.after_done, 0, "chunks after [DONE]")
    seen = transcript.answer()
    expect.equal(seen.prompt_token_ids, whole.prompt_token_ids, "prompt_token_ids of the chunks")
    found = compare(whole, seen, "auto")
    expect.true(found.equal, "the chunks should add up to the answer", found.describe())
    if seen.token_ids == whole.token_ids:
        expect.equal(seen.text, whole.text, "text of the chunks")
        expect.equal(seen.finish_reason, whole.finish_reason, "finish_reason of the chunks")
    reasons = [bool(event["choices"][0].get("finish_reason")) for event in transcript.choice_events]
    expect.equal(reasons, [False] * (len(reasons) - 1) + [True], "which chunks have a reason")
    return {"chunks": len(transcript.events), "finish_reason": seen.finish_reason}
