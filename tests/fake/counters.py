"""What ``/metrics`` shows, in the names of vLLM 0.32.0."""

from __future__ import annotations

import threading
from collections import Counter

from fake.engine import Finished
from fake.model import BLOCK

_SOURCES = ("local_compute", "local_cache_hit", "external_kv_transfer")
_REASONS = ("stop", "length", "abort", "error")


class Counters:
    """Counters of one server; ``transfers`` if it has NIXL's; ``block``: what it calls its own."""

    def __init__(self, model: str, *, transfers: bool, block: int = BLOCK) -> None:
        self._label = f'model_name="{model}"'
        self._transfers = transfers
        self._block = block
        self._lock = threading.Lock()
        self._sources: Counter[str] = Counter()
        self._finished: Counter[str] = Counter()
        self._moved = self._moves = self._running = self._looked_up = self._failed = 0

    def begin(self) -> None:
        """A request is in the engine."""
        with self._lock:
            self._running += 1

    def finish(self, done: Finished) -> None:
        """A request has left it: where its prompt tokens came from, and the bytes fetched."""
        with self._lock:
            self._running -= 1
            self._sources.update(done.sources)
            self._finished[done.reason] += done.requests
            self._moved += done.moved
            self._moves += done.moved > 0
            self._looked_up += done.looked_up
            self._failed += done.failed

    def finish_foreign(self) -> None:
        """A request of somebody else's has left the engine."""
        with self._lock:
            self._finished["length"] += 1

    def text(self, usage: float = 0.0) -> str:
        """The page; ``usage``: the part of the KV cache that is in use."""
        with self._lock:
            return f"{self._page()}vllm:kv_cache_usage_perc{{{self._label}}} {usage}\n"

    def _page(self) -> str:
        label = self._label
        lines = [f'vllm:cache_config_info{{block_size="{self._block}",engine="0"}} 1.0']
        lines += ["# TYPE vllm:num_requests_running gauge"]
        lines += [f"vllm:num_requests_running{{{label}}} {self._running}"]
        lines += [f"vllm:num_requests_waiting{{{label}}} 0"]
        lines += ["# TYPE vllm:prompt_tokens_by_source_total counter"]
        lines += [
            f'vllm:prompt_tokens_by_source_total{{{label},source="{source}"}} '
            f"{self._sources[source]}"
            for source in _SOURCES
        ]
        lines += ["# TYPE vllm:request_success_total counter"]
        lines += [
            f'vllm:request_success_total{{{label},finished_reason="{reason}"}} '
            f"{self._finished[reason]}"
            for reason in _REASONS
        ]
        lines += [f"vllm:external_prefix_cache_queries_total{{{label}}} {self._looked_up}"]
        lines += [f"vllm:nixl_num_failed_transfers_total{{{label}}} {self._failed}"]
        # Exported from the first transfer on, as NIXL's statistics are.
        if self._transfers and self._moves:
            lines += [f"vllm:nixl_bytes_transferred_sum{{{label}}} {self._moved}"]
            lines += [f"vllm:nixl_bytes_transferred_count{{{label}}} {self._moves}"]
        return "\n".join(lines) + "\n"
