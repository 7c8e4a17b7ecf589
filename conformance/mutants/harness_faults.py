"""The faults of the surroundings, by where they are."""

from __future__ import annotations

from conformance.mutants.harness_fault import HarnessFault

# Of counters and of the page that shows them. The first of each kind is waited for in vain.
COUNTERS = (
    HarnessFault(
        "metrics-frozen",
        "Both servers' /metrics stays as it was at the first reading.",
        "page_frozen",
        red=("length/2B",),
    ),
    HarnessFault(
        "requests-never-counted",
        "Decode answers, and never counts a request as finished.",
        "decode:never_settle",
        red=("length/B+1",),
    ),
    HarnessFault(
        "requests-counted-late",
        "Requests are counted a while after their answer, which must not be taken for anything "
        "else, nor hide a decode that recomputes.",
        "late:300;decode:recompute@length/T+B+7",
        red=("length/T+B+7",),
        green=("token-ids/same-answer/unstreamed", "streaming/usage/chat"),
    ),
    HarnessFault(
        "token-sources-frozen",
        "Decode's count of where prompt tokens came from stays as it was.",
        "decode:sources_frozen",
        red=("transfer/completion", "length/2B-1"),
    ),
    HarnessFault(
        "connector-metrics-frozen",
        "The connector's own series on decode stay as they were.",
        "decode:connector_frozen",
        red=("length/3B", "usage/connector-metrics"),
    ),
    HarnessFault(
        "metrics-missing",
        "/metrics has nothing of vLLM's counters.",
        "page_missing",
        red=("length/B", "streaming/answer/chat"),
    ),
    HarnessFault(
        "token-sources-missing",
        "Decode's /metrics does not tell where prompt tokens came from.",
        "decode:sources_missing",
        red=("length/B-1", "shared-prefix/cold/1 block"),
    ),
    HarnessFault(
        "connector-metrics-missing",
        "Decode's /metrics has none of the connector's series.",
        "decode:connector_missing",
        red=("transfer/chat",),
    ),
    HarnessFault(
        "metrics-garbled",
        "/metrics ends in half a line.",
        "page_garbled",
        red=("length/2", "usage/metrics/in flight"),
    ),
    HarnessFault(
        "metrics-down",
        "Prefill's /metrics answers HTTP 500 once a request was refused.",
        "prefill:metrics_refused",
        red=("usage/metrics/after an error",),
    ),
    HarnessFault(
        "counters-reset",
        "Decode's counters begin at 0 again while a request is under way.",
        "decode:counters_reset",
        red=("length/2B+1", "usage/counters/unstreamed"),
    ),
    HarnessFault(
        "requests-sent-twice",
        "A gateway sends every request to decode twice.",
        "decode:foreign",
        red=("sampling/max-tokens-1", "scheduler/prefix/decode/one block"),
    ),
)
# Of answers, as a gateway or a broken server gives them.
ANSWERS = (
    HarnessFault(
        "empty-answers",
        "Decode answers HTTP 200 without a token.",
        "decode:empty_text",
        red=("transfer/completion", "streaming/answer/completions"),
    ),
    HarnessFault(
        "answers-without-text",
        "Decode's answers have token ids and log-probabilities, and no text.",
        "decode:no_text",
        red=("length/2B", "structured-output/choice, unstreamed"),
    ),
    HarnessFault(
        "same-answer-to-all",
        "Every server gives the same answer to whatever it is asked.",
        "constant",
        red=("length/2B-1", "sampling/logprobs/completions"),
    ),
    HarnessFault(
        "web-page-instead",
        "A gateway answers with a page for a browser, HTTP 200.",
        "decode:web_page",
        red=("length/B", "token-ids/same-answer/unstreamed"),
    ),
    HarnessFault(
        "key-wanted",
        "Decode answers HTTP 401 to every request.",
        "decode:wants_key",
        red=("length/B-1",),
    ),
    HarnessFault(
        "cut-off",
        "The connection to decode ends half way through an answer.",
        "decode:cut_off",
        red=("length/3B", "streaming/answer/chat"),
    ),
    HarnessFault(
        "stream-ends-half-way",
        "Decode's streams end half way, as if that were all.",
        "decode:half_a_stream",
        red=("usage/counts/chat, not asked for", "endpoints/transfer/generate, streamed"),
        green=("length/B+1",),
    ),
    HarnessFault(
        "stream-without-end",
        "Decode's streams are whole but for the event that ends them.",
        "decode:no_done",
        red=("token-ids/same-answer/streamed", "sampling/stop-token/streamed"),
    ),
    HarnessFault(
        "chunks-doubled",
        "One chunk of each of decode's streams comes twice.",
        "decode:doubles",
        red=(
            "streaming/usage/chat",
            "endpoints/transfer/responses, streamed",
            "endpoints/transfer/messages, streamed",
        ),
        green=("length/2",),
    ),
    HarnessFault(
        "chunks-out-of-order",
        "Two chunks of each of decode's streams change places.",
        "decode:swaps",
        red=("streaming/usage/completions", "structured-output/regex, streamed"),
    ),
    HarnessFault(
        "usage-of-prompt-wrong",
        "Every server counts one prompt token too many in usage.",
        "usage_prompt",
        red=("usage/counts/completions, streamed", "usage/counts/completions, unstreamed"),
    ),
    HarnessFault(
        "usage-of-answer-wrong",
        "Every server counts one token of the answer too many in usage.",
        "usage_completion",
        red=("usage/counts/chat, unstreamed", "usage/counts/chat, streamed"),
        green=("length/2B+1",),
    ),
    HarnessFault(
        "usage-total-wrong",
        "The total in every server's usage is the prompt's.",
        "usage_total",
        red=("usage/counts/completions, continuous",),
        green=("transfer/chat",),
    ),
    HarnessFault(
        "usage-missing",
        "Decode's streams tell no usage, though it was asked for.",
        "decode:usage_none",
        red=("usage/counts/chat, continuous",),
    ),
)
# Of what is dropped, or taken for something else, between the legs.
HANDOFF = (
    HarnessFault(
        "params-of-a-neighbour",
        "Prefill hands over the params of another request.",
        "prefill:neighbours_params",
        red=("transfer/completion", "shared-prefix/cold/2 blocks"),
    ),
    HarnessFault(
        "params-dropped-from-answers",
        "A gateway drops kv_transfer_params from prefill's answers.",
        "prefill:no_params",
        red=("shared-prefix/cold/1 block",),
    ),
    HarnessFault(
        "params-dropped-from-requests",
        "A gateway drops kv_transfer_params from requests to decode.",
        "decode:drop_kv_transfer_params",
        red=("transfer/chat", "token-ids/decide-the-prompt/unstreamed"),
    ),
    HarnessFault(
        "ids-dropped-from-answers",
        "A gateway before every server drops token ids from answers.",
        "drops_ids",
        red=("length/3B", "scheduler/prefix/decode/one block", "scheduler/repeated/one by one"),
    ),
    HarnessFault(
        "ids-dropped-from-requests",
        "A gateway before every server drops return_token_ids from requests.",
        "drop_return_token_ids",
        red=("length/T+B+7", "streaming/answer/completions"),
    ),
    HarnessFault(
        "scores-dropped",
        "A gateway before every server drops logprobs from requests.",
        "drop_logprobs",
        red=("sampling/logprobs/chat", "shared-prefix/cold/3 blocks"),
    ),
    HarnessFault(
        "salts-dropped",
        "A gateway before every server drops cache_salt from requests.",
        "drop_cache_salt",
        red=("isolation/salt/decode", "isolation/salt/prefill"),
    ),
)
LIMIT = ("--answer-limit", "2")
# Of time, and of a server that is no more.
TIME = (
    HarnessFault(
        "decode-dies",
        "The decode instance ends at a request.",
        "decode:dies",
        red=("length/1",),
    ),
    HarnessFault(
        "slower-than-the-limit",
        "Decode answers after the time that an answer may take.",
        "decode:slow:3500",
        red=("transfer/completion",),
        options=LIMIT,
    ),
    HarnessFault(
        "dribbles-past-the-limit",
        "Decode begins to answer at once, and goes on for longer than an answer may take.",
        "decode:dribbles:3500",
        red=("transfer/chat", "streaming/answer/completions"),
        options=LIMIT,
    ),
    HarnessFault(
        "clock-jumps",
        "The time of day, the suite's and every server's, jumps by hours, which must neither make "
        "a healthy pair red nor hide a decode that recomputes or uses damaged KV.",
        "clock_jumps;decode:recompute@length/2B;decode:wrong_kv@length/3B",
        red=("length/2B", "length/3B"),
        green=("transfer/completion", "streaming/answer/chat", "usage/metrics/after an error"),
        alone=True,
    ),
)
FAULTS: tuple[HarnessFault, ...] = (*COUNTERS, *ANSWERS, *HANDOFF, *TIME)
