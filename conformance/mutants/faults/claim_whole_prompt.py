"""Not a token is left for decode to compute."""

from __future__ import annotations

from typing import Any

from conformance.mutants.fault import Fault, Found


class ClaimWholePrompt(Fault):
    """A load within the step claims the whole prompt, so that decode has no token to compute."""

    over = ("example",)
    ends_servers = True
    red = ("transfer/completion",)
    green = ("start/ready",)

    def claims(self, request: Any, computed: int, found: Found) -> Found:
        return (request.num_prompt_tokens - computed if found[0] else 0), False
