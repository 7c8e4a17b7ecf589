"""Models and modes of the scripted server beyond a dense model: refusals, images, drafts."""

from __future__ import annotations

import os
from hashlib import blake2b
from typing import Any

from conformance.scripted.faults import NONE, Faults
from conformance.scripted.log import die, warn
from conformance.scripted.model import VOCABULARY

PLACEHOLDERS = "<image> " * 36
HYBRID = ("tiny-granite-hybrid", "tiny-qwen3-next")
ENCODER_DECODER = "tiny-whisper"
LAYOUT = "VLLM_KV_CACHE_LAYOUT"
NO_HMA = ("ExampleConnector",)


def begin(model: str, connector: str | None, kv_dtype: str, faults: Faults) -> None:
    """End as vLLM 0.32.0 does where a model or a mode does not go with a connector, or at all."""
    if kv_dtype == "fp8" and "no_fp8" in faults:
        die("FP8 KV cache on CPU requires x86 with AVX-512 or AMX.", "NotImplementedError")
    if LAYOUT in os.environ and "layer_by_layer" in faults:
        die(f"{LAYOUT}={os.environ[LAYOUT]} does not satisfy every supported set", "ValueError")
    if connector is None or "serves_all" in faults:
        return
    if "dies_of_dtype" in faults and kv_dtype == "fp8":
        die("'NoneType' object has no attribute 'itemsize'", "AttributeError")
    if model == ENCODER_DECODER:
        text = "Encoder-decoder models are not currently supported with KV connectors"
        die(text, "AssertionError")
    if connector in NO_HMA and model in HYBRID:
        _die_without_hma(faults)


def _die_without_hma(faults: Faults) -> None:
    if "warns_not" not in faults:
        warn(
            "vllm.py:2179",
            "Turning off hybrid kv cache manager because `--kv-transfer-config` selects a KV "
            "connector that does not support it. Impact: hybrid SSM models (e.g. Jamba, Bamba) "
            "require HMA and will fail at startup without it.",
        )
    die("Failed to promote local KV cache specs to one unified type.", "ValueError")


def words(content: Any) -> str:
    """What a template makes of a message: placeholders for images, text as it is."""
    if isinstance(content, str):
        return content
    parts = (part.get("text", PLACEHOLDERS) for part in content)
    return " ".join(parts)


def shift(body: dict[str, Any]) -> int:
    """How far the images of a chat move what its tokens stand for; 0 without any."""
    urls = [
        part["image_url"]["url"]
        for message in body.get("messages") or ()
        for part in (message["content"] if isinstance(message.get("content"), list) else ())
        if part.get("type") == "image_url"
    ]
    digest = blake2b(repr(urls).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % VOCABULARY if urls else 0


def without_state(kv: list[int], prompt: int) -> list[int]:
    """What was loaded, but for the last entry that decode does not compute itself."""
    last = min(len(kv), prompt - 1)
    return [*kv[: last - 1], 0, *kv[last:]] if last > 0 else kv


class Drafts:
    """Counts what was drafted; ``on``: whether the server was told to."""

    def __init__(self) -> None:
        self.on = False
        self._tokens = 0

    def count(self, answered: int, faults: Faults = NONE) -> None:
        """Of an answer of so many tokens."""
        self._tokens += answered if self.on and "no_drafts" not in faults else 0

    def text(self) -> str:
        """Its part of ``/metrics``; nothing without drafts."""
        name = "vllm:spec_decode_num_draft_tokens_total"
        return f"# TYPE {name} counter\n{name} {self._tokens}\n" if self.on else ""
