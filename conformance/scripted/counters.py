"""What ``/metrics`` shows, in the names of vLLM 0.32.0."""

from __future__ import annotations

import threading
from collections import Counter

from conformance.scripted.engine import Finished
from conformance.scripted.faults import NONE, Faults
from conformance.scripted.model import BLOCK

_SOURCES = ("local_compute", "local_cache_hit", "external_kv_transfer")
_REASONS = ("stop", "length", "abort", "error")


class Counters:
    """Counters of one server; ``transfers`` if it has NIXL's; ``block``: what it calls its own."""

    def __init__(self, model: str, *, transfers: bool, block: int = BLOCK) -> None:
        self._label = f'model_name="{model}"'
        self._transfers = transfers
        self._block = block
        self._lock = threading.Lock()
        self.running = 0
        self.reset()

    def reset(self) -> None:
        """All that counts begins at 0, as after a restart."""
        self._sources: Counter[str] = Counter()
        self._finished: Counter[str] = Counter()
        self._moved = self._moves = self._looked_up = self._failed = 0
        self._found = self._prompt = self._written = self._computed = self._requests = 0

    def begin(self) -> None:
        """A request is in the engine."""
        with self._lock:
            self.running += 1

    def finish(self, done: Finished, faults: Faults = NONE) -> None:
        """A request has left it: where its prompt tokens came from, and the bytes fetched."""
        prompt, external = sum(done.sources.values()), done.sources["external_kv_transfer"]
        with self._lock:
            self.running -= 1
            self._requests += done.requests
            self._prompt += prompt * (1 + ("counts_twice" in faults))
            self._written += sum(len(drawn.tokens) for drawn in done.choices)
            self._written -= "loses_count" in faults
            self._found += external * (1 + ("hits_twice" in faults))
            self._computed += done.sources["local_compute"]
            self._computed += external * ("computed_less_cached" in faults)
            self._sources.update(done.sources)
            self._finished[done.reason] += done.requests
            self._moved += done.moved
            self._moves += done.moved > 0
            self._looked_up += done.looked_up
            self._failed += done.failed

    def refuse(self, prompt: int) -> None:
        """A request that was refused is counted all the same."""
        with self._lock:
            self._sources["local_compute"] += prompt

    def finish_foreign(self) -> None:
        """A request of somebody else's has left the engine."""
        with self._lock:
            self._finished["length"] += 1

    def text(self, usage: float = 0.0) -> str:
        """The page; ``usage``: the part of the KV cache that is held when nothing is running."""
        with self._lock:
            used = usage + self.running / 1000
            return f"{self._page()}vllm:kv_cache_usage_perc{{{self._label}}} {used}\n"

    def _page(self) -> str:
        label = self._label
        config = f'block_size="{self._block}",enable_prefix_caching="True",num_gpu_blocks="999"'
        page = [f'vllm:cache_config_info{{{config},engine="0"}} 1.0']
        page += [f"vllm:num_requests_running{{{label}}} {self.running}"]
        page += [f"vllm:num_requests_waiting{{{label}}} 0"]
        page += self._counter(
            "vllm:prompt_tokens_by_source_total", "source", {s: self._sources[s] for s in _SOURCES}
        )
        page += self._counter(
            "vllm:request_success_total",
            "finished_reason",
            {r: self._finished[r] for r in _REASONS},
        )
        for name, value in self._sums().items():
            page += [f"# TYPE vllm:{name} counter", f"vllm:{name}{{{label}}} {value}"]
        return "\n".join(page + self._histograms()) + "\n"

    def _counter(self, name: str, label: str, values: dict[str, int]) -> list[str]:
        lines = [f"# TYPE {name} counter"]
        return lines + [f'{name}{{{self._label},{label}="{k}"}} {v}' for k, v in values.items()]

    def _sums(self) -> dict[str, int]:
        return {
            "prompt_tokens_total": self._prompt,
            "prompt_tokens_cached_total": sum(self._sources[s] for s in _SOURCES[1:]),
            "generation_tokens_total": self._written,
            "external_prefix_cache_queries_total": self._looked_up,
            "external_prefix_cache_hits_total": self._found,
            "nixl_num_failed_transfers_total": self._failed,
        }

    def _histograms(self) -> list[str]:
        told = {
            "request_prompt_tokens": (self._prompt, self._requests),
            "request_generation_tokens": (self._written, self._requests),
            "request_prefill_kv_computed_tokens": (self._computed, self._requests),
        }
        # Exported from the first transfer on, as NIXL's statistics are.
        if self._transfers and self._moves:
            told["nixl_bytes_transferred"] = (self._moved, self._moves)
        return [
            line
            for name, (total, count) in told.items()
            for line in (
                f"# TYPE vllm:{name} histogram",
                f"vllm:{name}_sum{{{self._label}}} {total}",
                f"vllm:{name}_count{{{self._label}}} {count}",
            )
        ]
