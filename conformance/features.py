"""The rows of the matrix, in the order a reader meets them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Feature:
    """One row: a stable id, a title, and what a green cell means to a user."""

    id: str
    title: str
    meaning: str


FEATURES: tuple[Feature, ...] = (
    Feature(
        "start",
        "Start",
        "A pair becomes ready, or the engine refuses it in words that name the reason.",
    ),
    Feature(
        "basic-transfer",
        "Basic transfer",
        "A prompt prefilled on P is continued on D from transferred KV, with the answer of a "
        "single server.",
    ),
    Feature(
        "prompt-length",
        "Prompt lengths",
        "Every prompt length around block borders, and above one step's token budget, transfers.",
    ),
    Feature(
        "token-id-reuse",
        "Token-ID reuse",
        "D continues from the token ids P tokenized, without rendering the chat again.",
    ),
    Feature(
        "streaming",
        "Streaming",
        "A streamed answer is, token by token, the unstreamed one.",
    ),
    Feature(
        "sampling",
        "Sampling",
        "Seeds, penalties, biases, stops, scores and several choices act on D as on one server.",
    ),
    Feature(
        "structured-output",
        "Structured output",
        "JSON schema, regex, choice, grammar and structural tag hold across the handoff.",
    ),
    Feature(
        "tool-calls",
        "Tool calls",
        "Calls that tool_choice forces, and those of the model's own, are parsed as on one server.",
    ),
    Feature(
        "reasoning",
        "Reasoning",
        "Reasoning is told from the answer on D, and a grammar waits for its end.",
    ),
    Feature(
        "usage",
        "Usage and metrics",
        "Token counts in answers and counters in /metrics are exact on both sides, and stay "
        "readable.",
    ),
    Feature(
        "endpoints",
        "Endpoints",
        "Responses, messages, token-in/token-out and requests of several prompts transfer.",
    ),
    Feature(
        "leg-order",
        "Legs at once",
        "Decode may be asked before prefill has answered, and waits for the KV.",
    ),
    Feature(
        "multi-connector",
        "Several connectors in one",
        "Every child of MultiConnector moves KV by itself, and a prompt is loaded once.",
    ),
    Feature(
        "topology",
        "Topologies",
        "Several instances of a side, and sides whose block sizes differ, transfer.",
    ),
    Feature(
        "architectures",
        "Architectures and engine modes",
        "MoE, MLA, sliding windows, Mamba, images, drafts and quantised KV transfer, or the engine "
        "refuses them in words that name the reason.",
    ),
    Feature(
        "shared-prefix",
        "Concurrent shared prefixes",
        "Requests that share blocks of prompt at the same time never get each other's KV.",
    ),
    Feature(
        "scheduler",
        "Scheduler interplay",
        "Transfers add up with prefix caches, chunks, preemption and each other, and every answer "
        "is right.",
    ),
    Feature(
        "isolation",
        "Isolation",
        "KV of one cache salt or adapter never serves a request of another.",
    ),
    Feature(
        "lifecycle",
        "Lifecycle",
        "Caches emptied, engines paused and put to sleep: nothing stale is served, nothing lost.",
    ),
)

BY_ID: dict[str, Feature] = {feature.id: feature for feature in FEATURES}
