"""Faults in what is told of a request: usage in answers, and the page of ``/metrics``."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from conformance.scripted import usage
from conformance.scripted.faults import Faults

Json = dict[str, Any]


def answer(body: Json, faults: Faults, *, streamed: bool = False) -> Json:
    """An answer, or an event of one, with its usage spoilt."""
    if isinstance(body.get("response"), dict):
        return {**body, "response": answer(body["response"], faults, streamed=streamed)}
    counts = body.get("usage")
    if counts and "input_tokens" in counts:
        return {**body, "usage": _in_and_out(counts, faults)}
    if streamed and "usage_unasked" in faults and body.get("choices"):
        return {**body, "usage": usage.counted(1, 1)}
    if not counts or "prompt_tokens" not in counts:
        return body
    prompt, written = counts["prompt_tokens"], counts["completion_tokens"]
    prompt += "usage_prompt" in faults
    written += ("usage_completion" in faults) - ("stream_usage" in faults and streamed)
    if "stuck_usage" in faults and body.get("choices"):
        written = 0
    made = {**counts, **usage.counted(prompt, written)}
    if "usage_total" in faults:
        made["total_tokens"] = prompt
    if "all_cached" in faults and "prompt_tokens_details" in made:
        made["prompt_tokens_details"] = {"cached_tokens": prompt}
    return {**body, "usage": None if "usage_none" in faults else made}


def _in_and_out(counts: Json, faults: Faults) -> Json:
    """The counts of responses and messages."""
    more = {
        "input_tokens": counts["input_tokens"] + ("usage_prompt" in faults),
        "output_tokens": counts["output_tokens"] + ("usage_completion" in faults),
    }
    return {**counts, **more}


class Metrics:
    """What becomes of the page, reading by reading."""

    def __init__(self) -> None:
        self.refused = False
        self._readings: Counter[str] = Counter()
        self._first: dict[str, str] = {}

    def page(self, text: str, running: int, faults: Faults) -> tuple[int, str]:
        """The status and the text that a client gets."""
        self._readings.update(name for name, _, _ in faults.listed)
        broken = "metrics_500" in faults or ("metrics_busy" in faults and running)
        if broken or ("metrics_refused" in faults and self.refused):
            return 500, "Internal Server Error"
        if "metrics_garbage" in faults:
            return 200, "vllm:num_requests_running{ one"
        lines = text.splitlines()
        if "metrics_forget" in faults and self._readings["metrics_forget"] > 1:
            lines = [line for line in lines if "nixl_bytes" not in line]
        if "metrics_fall" in faults and self._readings["metrics_fall"] > 1:
            lines = [_renewed(line) for line in lines]
        if "metrics_idle" in faults:
            lines = [re.sub(r"(num_requests_running\S*) \d+", r"\1 0", line) for line in lines]
        if "metrics_frozen" in faults:
            lines = [self._frozen(line) for line in lines]
        return 200, "\n".join(lines) + "\n"

    def _frozen(self, line: str) -> str:
        name = line.split(" ")[0]
        return self._first.setdefault(name, line) if "nixl_bytes" in name else line


def _renewed(line: str) -> str:
    return re.sub(r"^(vllm:generation_tokens_total\S*) .*", r"\1 0", line)
