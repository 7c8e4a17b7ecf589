"""What a server is started with: its command line and its environment."""

from __future__ import annotations

import json
from pathlib import Path

from conformance.models import Model
from conformance.serving.devices import Placement
from conformance.serving.engine import Installation

MAX_MODEL_LEN = 2048
# Small, so that a prompt of a few blocks already needs more than one scheduler step.
TOKEN_BUDGET = 512
# JSON allows any whitespace between tokens, and a model with random weights never stops at it.
STRUCTURED_OUTPUTS = {"backend": "xgrammar", "disable_any_whitespace": True}
# Changes only answers to requests with tools (vLLM refuses tool_choice "auto" without it). The
# format of this parser is JSON between two tags, which needs nothing of a model.
TOOL_CALLS = ("--enable-auto-tool-choice", "--tool-call-parser", "hermes")
# Adds /inference/v1/generate, token-in/token-out, which answers 403 without it (0.32.0).
SCALE_OUT = "--enable-scale-out"

_ENV = {
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_HOST_IP": "127.0.0.1",
    # Stores keyed by vLLM's block hashes need both processes to hash alike (LMCache#1139).
    "PYTHONHASHSEED": "0",
    # Adds /reset_prefix_cache, /sleep and their like; errors are logged with their stack (0.32.0).
    "VLLM_SERVER_DEV_MODE": "1",
}


def command(engine: Installation, model: Model, spot: Placement) -> list[str]:
    """The command line that every server has, whatever its connector; later options win."""
    return [
        *engine.launch_prefix(model.source),
        *("--served-model-name", model.name, "--dtype", model.dtype, "--seed", "0"),
        *("--max-model-len", str(MAX_MODEL_LEN)),
        *("--max-num-batched-tokens", str(TOKEN_BUDGET)),
        *("--enforce-eager", "--enable-prompt-tokens-details"),
        *("--structured-outputs-config", json.dumps(STRUCTURED_OUTPUTS)),
        *TOOL_CALLS,
        SCALE_OUT,
        *spot.args,
    ]


def environment(model: Model, spot: Placement) -> dict[str, str]:
    """The environment that every server has, beside that of the suite itself."""
    offline = {"HF_HUB_OFFLINE": "1"} if Path(model.source).is_dir() else {}
    return {**_ENV, **offline, **spot.env}
