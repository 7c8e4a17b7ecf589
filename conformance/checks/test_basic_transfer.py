"""Basic transfer: the requirement that all others stand on.

A decode instance that recomputes every prompt gives the same text as one that uses the
transferred KV (vllm#26896, dynamo#13267), so the answer alone decides nothing here.
"""

from conformance.case import Case
from conformance.pair import Ask, chat, completion
from conformance.registry import check


@check("transfer/completion", feature="basic-transfer")
def test_completion_is_continued_from_transferred_kv(case: Case) -> None:
    """A cold completions prompt prefilled on P is continued on D from the transferred KV."""
    length = 2 * case.block + case.block // 2
    case.prove(
        Ask(
            "completion of two and a half blocks",
            "completions",
            lambda variant: completion(case.ids(length, variant), max_tokens=16),
        )
    )


@check("transfer/chat", feature="basic-transfer")
def test_chat_is_continued_from_transferred_kv(case: Case) -> None:
    """A cold chat prompt prefilled on P is continued on D from the transferred KV."""
    case.prove(
        Ask(
            "chat of at least two blocks",
            "chat/completions",
            lambda variant: chat(case.text(2 * case.block, variant), max_tokens=16),
        )
    )


@check("real-model/transfer", feature="basic-transfer", model="real")
def test_real_model_is_continued_from_transferred_kv(case: Case) -> None:
    """A trained instruct model answers a chat through the pair as it does on one server."""
    question = "Summarize the text above in one sentence."
    case.prove(
        Ask(
            "chat with a trained model",
            "chat/completions",
            lambda variant: chat(f"{case.text(case.block, variant)}\n{question}", max_tokens=12),
        )
    )
