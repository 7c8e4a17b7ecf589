"""Counters of a server, read with prometheus_client's parser; deltas by polling."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import httpx
from prometheus_client.parser import text_string_to_metric_families

from conformance.errors import ForeignTraffic, SuiteError

Labels = frozenset[tuple[str, str]]

# Names and meaning as of vLLM 0.32.0 (v1/metrics/loggers.py).
BY_SOURCE = "vllm:prompt_tokens_by_source_total"
FINISHED = "vllm:request_success_total"
CACHE_CONFIG = "vllm:cache_config_info"
RUNNING = "vllm:num_requests_running"
WAITING = "vllm:num_requests_waiting"

SETTLE_LIMIT_S = 10.0
SETTLE_POLL_S = 0.02


@dataclass(frozen=True)
class Counters:
    """One reading of ``/metrics``."""

    samples: dict[tuple[str, Labels], float]

    def total(self, name: str, **labels: str) -> float:
        """Sum of a sample over all series that carry the labels; 0 without any."""
        wanted = set(labels.items())
        return sum(v for (n, ls), v in self.samples.items() if n == name and wanted <= ls)

    def has(self, name: str) -> bool:
        """Whether the sample is exported at all."""
        return any(n == name for n, _ in self.samples)

    def block_size(self) -> int:
        """Tokens per KV block, from ``vllm:cache_config_info``. Raises :class:`SuiteError`."""
        for name, labels in self.samples:
            if name == CACHE_CONFIG:
                found = dict(labels).get("block_size", "")
                if found.isdigit():
                    return int(found)
        raise SuiteError(f"{CACHE_CONFIG} has no block_size: is /metrics a vLLM server's?")

    def minus(self, before: Counters) -> Counters:
        """What was added since ``before``; series that are new count from 0."""
        return Counters({k: v - before.samples.get(k, 0.0) for k, v in self.samples.items()})


@dataclass(frozen=True)
class TokenSources:
    """Where the prompt tokens of the requests between two readings came from, in tokens."""

    local_compute: int
    local_cache_hit: int
    external: int

    @classmethod
    def of(cls, delta: Counters) -> TokenSources:
        """From a difference of two readings."""
        return cls(
            *(
                round(delta.total(BY_SOURCE, source=source))
                for source in ("local_compute", "local_cache_hit", "external_kv_transfer")
            )
        )

    @property
    def total(self) -> int:
        """All prompt tokens: the invariant of vLLM's ``stats.py``."""
        return self.local_compute + self.local_cache_hit + self.external


def parse(text: str) -> Counters:
    """From the text format of ``/metrics``; histogram buckets, its bulk, are left out."""
    text = "\n".join(line for line in text.splitlines() if "_bucket{" not in line)
    return Counters(
        {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
    )


def scrape(url: str) -> Counters:
    """One reading of a server. Raises :class:`SuiteError` when there is none to be had."""
    try:
        answer = _http().get(f"{url}/metrics")
        answer.raise_for_status()
    except httpx.HTTPError as problem:
        raise SuiteError(f"{url}/metrics cannot be read: {problem}") from problem
    return parse(answer.text)


@cache
def _http() -> httpx.Client:
    """One client for all readings: making one costs more than a reading does."""
    return httpx.Client(timeout=10)


@dataclass
class Meter:
    """Counter differences around requests of ours on one server.

    A server answers before it counts, so :meth:`delta` polls until exactly the expected number
    of requests has finished and two readings in a row agree.
    """

    read: Callable[[], Counters]
    before: Counters

    @classmethod
    def on(cls, read: Callable[[], Counters]) -> Meter:
        """A meter that starts from a reading taken now."""
        return cls(read, read())

    def delta(self, requests: int, moved: str | None = None) -> Counters:
        """The settled difference after ``requests`` finished requests.

        ``moved``: a sample that may be exported late and is waited for, though not insisted on.
        Raises :class:`ForeignTraffic` when more requests finished than were ours, and
        :class:`SuiteError` when the counters never account for them.
        """
        deadline = time.monotonic() + SETTLE_LIMIT_S
        late = time.monotonic() + SETTLE_LIMIT_S / 5
        last: Counters | None = None
        while True:
            now = self.read().minus(self.before)
            finished = round(now.total(FINISHED))
            if finished > requests:
                raise ForeignTraffic(
                    f"{finished} requests finished where {requests} of ours were sent: other "
                    "traffic is on this server, so no counter can be believed"
                )
            quiet = last is not None and _same(now, last)
            arrived = moved is None or now.total(moved) > 0 or time.monotonic() > late
            if finished == requests and quiet and arrived:
                return now
            if time.monotonic() > deadline:
                raise SuiteError(
                    f"counters did not settle in {SETTLE_LIMIT_S:.0f} s: {FINISHED} moved by "
                    f"{finished}, but should have moved by {requests}"
                )
            last = now
            time.sleep(SETTLE_POLL_S)


def _same(one: Counters, other: Counters) -> bool:
    """Equal in what we judge by; clocks and process statistics move all the time."""
    return TokenSources.of(one) == TokenSources.of(other)
