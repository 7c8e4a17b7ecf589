"""Endpoints: KV is handed over on every endpoint that a client may use, not on the best known two.

An endpoint that forgets ``kv_transfer_params`` makes decode recompute in silence (token-in/
token-out before vllm#42644, responses before vllm#37424), and one request of several prompts has
room for one handoff (vllm#19902, vllm#38900).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from conformance import expect
from conformance.answer import Answer, all_answers
from conformance.bodies import conversations, message, prefill_body, response, tokens_in
from conformance.case import Case
from conformance.client import Body, Endpoint, Rejected
from conformance.endpoints import path_of
from conformance.errors import NotHere, ReferenceFailed, Refused
from conformance.handoffs import Handed
from conformance.metrics import Meter, TokenSources
from conformance.pair import Ask, chat, completion
from conformance.registry import check
from conformance.several import each_its_own, prove_each

MODES = ("unstreamed", "streamed")
BATCH: Endpoint = "chat/completions/batch"
# Beside chat and completions, that every other check uses.
BODIES: dict[Endpoint, Callable[[Case, int], Body]] = {
    "responses": lambda case, variant: response(case.text(2 * case.block, variant)),
    "messages": lambda case, variant: message(case.text(2 * case.block, variant)),
    "generate": lambda case, variant: tokens_in(case.ids(2 * case.block + 9, variant)),
}
NOT_OFFERED = (403, 404, 405)


@check(
    "endpoints/transfer",
    feature="endpoints",
    level="extended",
    cases=tuple(f"{endpoint}, {mode}" for endpoint in BODIES for mode in MODES),
)
def test_every_endpoint_hands_kv_over(case: Case) -> None:
    """A prompt sent to this endpoint of P and D is continued on D from the transferred KV.

    Responses (``/v1/responses``), messages (``/v1/messages``, Anthropic's) and token-in/token-out
    (``/inference/v1/generate``) take ``kv_transfer_params`` and return them.
    """
    endpoint, ask = _ask(case)
    with _offered(endpoint):
        climbed = case.prove(ask)
    seen, wanted = climbed.answer, climbed.expected
    expect.equal(seen.finish_reason, wanted.finish_reason, "finish_reason")
    expect.equal(_counts(seen), _counts(wanted), "prompt and completion tokens in usage")
    case.saw("usage", _counts(seen))
    if ask.stream:
        expect.true(climbed.transcript.done, "the stream should have its last event", "none came")
        expect.equal(climbed.transcript.after_done, 0, "events after the last one")


@check("endpoints/list-prompt", feature="endpoints", level="extended", cases=MODES)
def test_several_prompts_in_one_request(case: Case) -> None:
    """Each of several prompts in one completions request gets the answer it would get alone.

    They are equally long and end in the same token, so a prompt that is given another's KV is
    given the other's answer. P returns the params of its first prompt alone (vLLM 0.32.0,
    ``openai/completion/serving.py``), and D applies what it is given to every prompt.
    """

    def prompts(variant: int) -> list[list[int]]:
        # Together within one step: a prompt that is computed in two has a row of its own.
        first = case.ids(case.block + case.block // 2, variant)
        return [first, case.pair.prompts.sibling(first, case.cell.id, variant, "second")]

    ask = Ask(
        "completion of two prompts in one request",
        "completions",
        lambda variant: {**completion([1]), "prompt": prompts(variant)},
        stream=case.name == "streamed",
    )
    alone = [case.pair.expected("completions", completion(prompt)) for prompt in prompts(0)]
    with _offered("completions"):
        prove_each(case, ask, alone)


@check("endpoints/batch-chat", feature="endpoints", level="extended")
def test_a_batch_of_chats(case: Case) -> None:
    """Each chat of a batch (``/v1/chat/completions/batch``) gets the answer it would get alone.

    vLLM 0.32.0 has no ``kv_transfer_params`` in such a request (``BatchChatCompletionRequest``)
    and drops them, so what needs them is recomputed. That is no fault of a connector, and no
    transfer either: the cell says unsupported once the answers are found right.
    """
    texts = _two_texts(case, 0)
    with _offered(BATCH):
        alone = [case.pair.expected("chat/completions", chat(text)) for text in texts]
        if case.cell.profile.handoff == "none" or _prefilled(case, texts).kv_transfer_params:
            prove_each(case, _batch(case), alone)
        else:
            _recomputed(case, texts, alone)


def _ask(case: Case) -> tuple[Endpoint, Ask]:
    name, mode = case.name.split(", ")
    endpoint = next(known for known in BODIES if known == name)
    stream = mode == "streamed"
    # Responses and messages tell usage at the end of every stream.
    asked = {"stream_options": {"include_usage": True}} if endpoint == "generate" and stream else {}
    ask = Ask(
        f"request to {path_of(endpoint)}",
        endpoint,
        lambda variant: {**BODIES[endpoint](case, variant), **asked},
        stream=stream,
    )
    return endpoint, ask


def _counts(answer: Answer) -> tuple[int, int]:
    return answer.prompt_tokens, answer.completion_tokens


@contextmanager
def _offered(endpoint: Endpoint) -> Iterator[None]:
    """A server without the endpoint is no failure, nor is one that refuses the request clearly.

    Raises :class:`NotHere` for the one, :class:`Refused` for the other.
    """
    try:
        yield
    except (Rejected, ReferenceFailed) as problem:
        refusal = problem if isinstance(problem, Rejected) else problem.__cause__
        if isinstance(refusal, Rejected) and refusal.status in NOT_OFFERED:
            raise NotHere(f"{path_of(endpoint)} is not offered: {refusal}") from problem
        if isinstance(problem, Rejected) and problem.status < 500:
            raise Refused(f"{path_of(endpoint)} refuses it: {problem}") from problem
        raise


def _batch(case: Case) -> Ask:
    def body(variant: int) -> dict[str, Any]:
        return conversations(_two_texts(case, variant))

    return Ask("batch of two chats", BATCH, body)


def _two_texts(case: Case, variant: int) -> list[str]:
    """Both fit into one step, as the prompts of a list do."""
    return [case.text(case.block + case.block // 4, variant, number) for number in range(2)]


def _prefilled(case: Case, texts: list[str]) -> Answer:
    """P's answer to the batch, asked as a router would ask."""
    way = case.pair.handoff(case.pair.place)
    body = prefill_body(BATCH, conversations(texts))
    asked = Handed(way.prefill_params()).into(body)
    return case.pair.prefill.ask(BATCH, asked, way.headers())


def _recomputed(case: Case, texts: list[str], alone: list[Answer]) -> None:
    meter = Meter.on(case.pair.decode)
    answer = case.pair.decode.ask(BATCH, conversations(texts))
    sources = TokenSources.of(meter.delta())
    case.saw("where decode's prompt tokens came from", vars(sources))
    expect.equal(sources.total, sum(a.prompt_tokens for a in alone), "prompt tokens on decode")
    each_its_own(case, alone, all_answers(answer.raw))
    raise Refused(
        f"{path_of(BATCH)} takes no kv_transfer_params and returns none (vLLM 0.32.0, "
        "BatchChatCompletionRequest in openai/chat_completion/protocol.py): decode computed "
        f"{sources.local_compute} of {sources.total} prompt tokens itself, and answered rightly"
    )
