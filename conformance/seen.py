"""What a probe saw of a pair: facts only, for :mod:`conformance.diagnosis` to judge."""

from __future__ import annotations

from dataclasses import dataclass, field

from conformance.evidence import Outcome, Rung, Step
from conformance.metrics import Counters, TokenSources
from conformance.serving.attached import ServerFacts

LOOKED_UP = "vllm:external_prefix_cache_queries_total"
FAILED = "vllm:nixl_num_failed_transfers_total"


@dataclass
class Seen:
    """``None`` or empty: it did not come to that.

    ``one_server``: both URLs reach the same counters. ``traffic``, ``unsettled``, ``refused``,
    ``no_params``, ``no_oracle``: the words of what went wrong. ``asked``: whether P and D
    counted the request. ``reverse_external``: tokens that came from D to P when tried.
    ``insensitive``: different prompts get the same answer.
    """

    prefill: ServerFacts
    decode: ServerFacts
    routed: bool = False
    one_server: bool = False
    traffic: str = ""
    unsettled: str = ""
    asked: tuple[bool, bool] = (True, True)
    refused: str = ""
    no_params: str = ""
    no_oracle: str = ""
    prompt_tokens: int = 0
    promised: int = 0
    prefill_delta: Counters | None = None
    decode_delta: Counters | None = None
    reverse_external: int = 0
    insensitive: bool = False
    steps: list[Step] = field(default_factory=list)

    @property
    def sources(self) -> TokenSources | None:
        """Where decode's prompt tokens came from."""
        return TokenSources.of(self.decode_delta) if self.decode_delta else None

    @property
    def external(self) -> int:
        """Prompt tokens that decode was served from outside."""
        return self.sources.external if self.sources else 0

    def looked_up(self, side: str) -> bool | None:
        """Whether the side asked a connector for this prompt; ``None`` if it cannot be told.

        Counted by the scheduler for every prompt, hit or not, and only where there is a
        connector (vLLM 0.32.0, ``Scheduler.schedule``).
        """
        delta = self.prefill_delta if side == "prefill" else self.decode_delta
        if delta is None or not delta.has(LOOKED_UP):
            return None
        return delta.total(LOOKED_UP) > 0

    @property
    def failed_transfers(self) -> int:
        """Transfers that either side counted as failed."""
        deltas = (self.prefill_delta, self.decode_delta)
        return round(sum(delta.total(FAILED) for delta in deltas if delta))

    def outcome(self, rung: Rung) -> Outcome | None:
        """What a step of the ladder showed, if it was taken."""
        return next((step.outcome for step in self.steps if step.name is rung), None)

    def summary(self, rung: Rung) -> str:
        """A step's own words."""
        return next((step.summary for step in self.steps if step.name is rung), "")

    @property
    def differences(self) -> list[tuple[str, str, str]]:
        """Cause, name and words for what P and D say differently of themselves."""
        p, d = self.prefill, self.decode
        rows = (
            ("models_differ", "models", p.models[0], d.models[0]),
            ("versions_differ", "vLLM versions", p.version, d.version),
            ("block_sizes_differ", "block sizes", p.block_size, d.block_size),
        )
        return [
            (cause, name, f"P has {ours}, D has {theirs}")
            for cause, name, ours, theirs in rows
            if ours and theirs and ours != theirs
        ]
