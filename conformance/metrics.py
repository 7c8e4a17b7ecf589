"""Counters of a server, read with prometheus_client's parser; deltas by polling."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import httpx
from prometheus_client.parser import text_string_to_metric_families

from conformance.errors import CountersWentBack, ForeignTraffic, SuiteError, Unsettled
from conformance.transport import tls

Labels = frozenset[tuple[str, str]]

# Names and meaning as of vLLM 0.32.0 (v1/metrics/loggers.py).
BY_SOURCE = "vllm:prompt_tokens_by_source_total"
FINISHED = "vllm:request_success_total"
CACHE_CONFIG = "vllm:cache_config_info"
RUNNING = "vllm:num_requests_running"
WAITING = "vllm:num_requests_waiting"
USAGE = "vllm:kv_cache_usage_perc"

_BULK = re.compile(r"^#|^\w[\w:]*_(bucket|created)[ {]")

SETTLE_LIMIT_S = 10.0
SETTLE_POLL_S = 0.02
# What a connector counts may come after the request; waited for where it is missing.
LATE_LIMIT_S = 2.0
# Shorter for who cannot wait that long; see :func:`patience`.
_PATIENCE: ContextVar[tuple[float, float] | None] = ContextVar("patience", default=None)
# A server counts within a few of these after it answered.
STEADY_READINGS = 5


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
        found = self.cache_config("block_size") or ""
        if found.isdigit():
            return int(found)
        raise SuiteError(f"{CACHE_CONFIG} has no block_size: is /metrics a vLLM server's?")

    def cache_config(self, name: str) -> str | None:
        """A value of ``vllm:cache_config_info`` as Python writes it; ``None`` if it is not told."""
        told = (dict(labels) for sample, labels in self.samples if sample == CACHE_CONFIG)
        return next((labels[name] for labels in told if name in labels), None)

    def minus(self, before: Counters) -> Counters:
        """What was added since ``before``; series that are new count from 0."""
        return Counters({k: v - before.samples.get(k, 0.0) for k, v in self.samples.items()})


@dataclass(frozen=True)
class TokenSources:
    """Where the prompt tokens of the requests between two readings came from."""

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
    """From the text format of ``/metrics``, less what nobody counts with, which is most of it.

    Left out: histogram buckets, the times at which series were made, help and types.
    """
    text = "\n".join(line for line in text.splitlines() if not _BULK.search(line))
    return Counters(
        {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
    )


def scrape(url: str, headers: dict[str, str] | None = None) -> Counters:
    """One reading of a server. Raises :class:`SuiteError` when there is none to be had."""
    try:
        answer = _http().get(f"{url}/metrics", headers=headers)
        answer.raise_for_status()
    except httpx.HTTPError as problem:
        raise SuiteError(f"{url}/metrics cannot be read: {problem}") from problem
    try:
        return parse(answer.text)
    except ValueError as problem:
        raise SuiteError(f"{url}/metrics is not in Prometheus' text format: {problem}") from problem


@cache
def _http() -> httpx.Client:
    """One client for all readings: making one costs more than a reading does."""
    return httpx.Client(timeout=10, verify=tls())


class Metered(Protocol):
    """A server whose every request is ours, and the number of them that it has answered."""

    answered: int
    uncertain: bool

    def counters(self) -> Counters:
        """Every sample of ``/metrics`` now."""


@contextmanager
def patience(settle_s: float, late_s: float) -> Iterator[None]:
    """Within it, counters have to settle sooner, and what is missing may be less late."""
    token = _PATIENCE.set((min(settle_s, SETTLE_LIMIT_S), late_s))
    try:
        yield
    finally:
        _PATIENCE.reset(token)


@dataclass
class Meter:
    """Counter differences around requests of ours on one server.

    A server answers before it counts, so both readings are polled for until the server has
    counted exactly the requests that it answered us: no earlier one falls into the difference,
    and none of anybody else does.
    """

    source: Metered
    before: Counters

    @classmethod
    def on(cls, source: Metered) -> Meter:
        """A meter that starts now. Raises as :meth:`delta`."""
        return cls(source, _accounted(source))

    def delta(self, *moved: str) -> Counters:
        """The settled difference. ``moved``: samples that may come late and are waited for.

        Raises :class:`ForeignTraffic` when more requests finished than were ours,
        :class:`CountersWentBack` when they are fewer than before, and :class:`Unsettled` when
        the counters never account for them.
        """
        late = time.monotonic() + _limits()[1]
        now = self._now()
        while not all(now.total(m) > 0 for m in moved) and time.monotonic() < late:
            time.sleep(SETTLE_POLL_S)
            now = self._now()
        return now

    def _now(self) -> Counters:
        return _accounted(self.source, _finished(self.before)).minus(self.before)


def _finished(counters: Counters) -> int:
    """Requests ever finished, which vLLM tells from its start on; else :class:`SuiteError`."""
    if not counters.has(FINISHED):
        why = "was the server started with --disable-log-stats, or is that a gateway's page?"
        raise SuiteError(f"/metrics has no {FINISHED}, so no counter can be believed: {why}")
    return round(counters.total(FINISHED))


def _accounted(source: Metered, before: int = 0) -> Counters:
    """A reading in which exactly the requests that were answered are counted.

    vLLM counts a request as finished after everything else about it, and in the event loop that
    also serves ``/metrics`` (0.32.0, ``v1/metrics/loggers.py``), so such a reading is complete.
    """
    if source.uncertain:
        _agree(source)
    limit_s, _ = _limits()
    deadline = time.monotonic() + limit_s
    while True:
        now = source.counters()
        finished = _finished(now)
        if finished == source.answered:
            return now
        if finished < before:
            source.uncertain = True
            raise CountersWentBack(
                f"{FINISHED} went from {before} back to {finished}: the server was started again, "
                "or several share its URL, so no counter can be believed"
            )
        if finished > source.answered:
            source.uncertain = True
            raise ForeignTraffic(
                f"{finished} requests finished where {source.answered} of ours were answered: "
                "other traffic is on this server, so no counter can be believed; keep everybody "
                "else off the pair (take it out of its load balancer) and try again"
            )
        if time.monotonic() > deadline:
            source.uncertain = True
            raise Unsettled(
                f"counters did not settle in {limit_s:.0f} s: {FINISHED} is {finished}, "
                f"but should be {source.answered}"
            )
        time.sleep(SETTLE_POLL_S)


def _limits() -> tuple[float, float]:
    """Seconds for counters to settle, and then for those that are still missing."""
    return _PATIENCE.get() or (SETTLE_LIMIT_S, LATE_LIMIT_S)


def _agree(source: Metered) -> None:
    """Where our count is not certain: take the server's once it is idle.

    That is so at first, after a request that failed, and after one that became nobody knows how
    many.
    """
    deadline = time.monotonic() + SETTLE_LIMIT_S
    steady, last = 0, -1
    while steady < STEADY_READINGS and time.monotonic() < deadline:
        now = source.counters()
        finished = _finished(now)
        idle = now.total(RUNNING) == 0 and now.total(WAITING) == 0
        steady = steady + 1 if idle and finished == last else 0
        last = finished
        time.sleep(SETTLE_POLL_S)
    source.answered, source.uncertain = last, False
