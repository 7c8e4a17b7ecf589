"""What goes wrong between a client and a healthy engine: in a gateway, on a page, with a clock."""

from __future__ import annotations

import re
import time
from itertools import count
from typing import Any

from conformance.scripted.faults import Faults
from conformance.scripted.gateway_faults import DRIBBLES

Json = Any
_IDS = ("token_ids", "prompt_token_ids", "input_messages", "output_messages")
_TEXTS = ("text", "content", "delta")
# The series that a fault keeps as they were, or leaves out.
_FROZEN = {
    "page_frozen": re.compile(r"^(# )?.*vllm:(?!cache_config)"),
    "sources_frozen": re.compile(r"prompt_tokens_by_source"),
    "connector_frozen": re.compile(r"nixl_bytes"),
}
_MISSING = {
    "page_missing": re.compile(r"vllm:(?!cache_config)"),
    "sources_missing": re.compile(r"prompt_tokens_by_source"),
    "connector_missing": re.compile(r"nixl_bytes"),
}
HOUR_S = 3600


class Gateway:
    """Of one server. Its clock jumps an hour ahead and two back, again and again."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, str], list[str]] = {}
        self._jumps = count()

    def now(self, faults: Faults) -> float:
        """The time of day, in seconds."""
        if "clock_jumps" not in faults:
            return time.time()
        return time.time() + HOUR_S * (1 if next(self._jumps) % 2 else -1)

    def page(self, text: str, agent: str, faults: Faults) -> str:
        """The page of ``/metrics``. ``agent``: who reads it; each sees a page of its own freeze."""
        for fault, pattern in _FROZEN.items():
            if fault in faults:
                text = self._frozen((fault, agent), text, pattern)
        for fault, pattern in _MISSING.items():
            if fault in faults:
                text = _only(text, pattern, matching=False)
        if "page_garbled" in faults:
            text += "vllm:num_requests_running{ one\n"
        if "clock_jumps" in faults:
            made = f"vllm:request_success_created {self.now(faults)}"
            text += f"# TYPE vllm:request_success_created gauge\n{made}\n"
        return text

    def _frozen(self, key: tuple[str, str], text: str, pattern: re.Pattern[str]) -> str:
        kept = self._first.setdefault(key, _only(text, pattern).splitlines())
        return "\n".join([*_only(text, pattern, matching=False).splitlines(), *kept]) + "\n"


def answer(body: Json, faults: Faults) -> Json:
    """What becomes of an answer, or of an event of one."""
    if "drops_ids" in faults:
        body = _without(body, _IDS)
    return _mute(body) if "no_text" in faults else body


def events(told: list[str], faults: Faults) -> list[str]:
    """What becomes of a stream's events."""
    at = len(told) // 2
    if "doubles" in faults:
        return [*told[:at], told[at], *told[at:]]
    if "swaps" in faults:
        return [*told[: at - 1], told[at], told[at - 1], *told[at + 1 :]]
    if "half_a_stream" in faults:
        return told[:at]
    return told


def neighbour(ids: list[int]) -> list[int]:
    """A prompt of the same length that ends in the same token, and is another."""
    return [*(token + 1 for token in ids[:-1]), ids[-1]]


def dribble_s(faults: Faults) -> float:
    """Seconds that an answer takes from its first byte to its last."""
    return faults.number(DRIBBLES) / 1000


def _only(text: str, pattern: re.Pattern[str], *, matching: bool = True) -> str:
    lines = [line for line in text.splitlines() if bool(pattern.search(line)) is matching]
    return "\n".join([*lines, ""])


def _without(value: Json, names: tuple[str, ...]) -> Json:
    if isinstance(value, dict):
        return {key: _without(each, names) for key, each in value.items() if key not in names}
    return [_without(each, names) for each in value] if isinstance(value, list) else value


def _mute(value: Json) -> Json:
    if isinstance(value, list):
        return [_mute(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: "" if key in _TEXTS and isinstance(each, str) else _mute(each)
        for key, each in value.items()
    }
