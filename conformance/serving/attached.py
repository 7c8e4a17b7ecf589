"""One vLLM server that somebody else started: what it says of itself, and how it is read."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import httpx

from conformance.errors import EnvironmentProblem, SuiteError, UsageError
from conformance.metrics import BY_SOURCE, FINISHED, Counters, scrape
from conformance.serving.rootcause import RootCause
from conformance.serving.served import ServerRole
from conformance.transport import tls

LOOK_LIMIT_S = 10.0
DEATH_WAIT_S = 5.0
POLL_S = 0.1


@dataclass(frozen=True)
class ServerFacts:
    """What a server tells of itself; ``version`` is empty where it does not say.

    ``models``: ids in ``/v1/models``, the base model first; ``max_model_len`` in tokens;
    ``block_size`` in tokens, 0 where ``/metrics`` has none; ``counts``: whether it exports the
    counters that proof needs.
    """

    url: str
    models: tuple[str, ...]
    max_model_len: int | None
    version: str
    block_size: int
    counts: bool


def look_at(option: str, url: str, headers: dict[str, str]) -> ServerFacts:
    """Ask a server who it is. ``option``: what the URL was given as, for errors.

    Raises :class:`EnvironmentProblem` when nothing answers and :class:`UsageError` when what
    answers refuses us or is not a vLLM server.
    """
    with httpx.Client(base_url=url, headers=headers, timeout=LOOK_LIMIT_S, verify=tls()) as http:
        cards = _models(option, url, http)
        version = _version(http)
    counters = _counters(url, headers)
    return ServerFacts(
        url=url,
        models=tuple(card["id"] for card in cards),
        max_model_len=cards[0].get("max_model_len"),
        version=version,
        block_size=_block_size(counters),
        counts=counters.has(BY_SOURCE) and counters.has(FINISHED),
    )


def must_answer(option: str, url: str, headers: dict[str, str]) -> None:
    """Raises :class:`EnvironmentProblem` unless something speaks HTTP at the URL."""
    try:
        httpx.get(f"{url}/health", headers=headers, timeout=LOOK_LIMIT_S, verify=tls())
    except httpx.HTTPError as problem:
        raise EnvironmentProblem(_nothing_there(option, url, problem)) from problem


def must_count(option: str, facts: ServerFacts) -> None:
    """Raises :class:`EnvironmentProblem` unless the server exports the counters of its requests."""
    if not facts.counts or not facts.block_size:
        raise EnvironmentProblem(
            f"{option} {facts.url}/metrics has no {BY_SOURCE}: without counters no transfer can be "
            "proven; start the server without --disable-log-stats, and give its own URL rather "
            "than a gateway's"
        )


@dataclass(eq=False)
class AttachedServer:
    """A server as a check talks to it; its process and its log are out of reach."""

    role: ServerRole
    model: str
    url: str
    block_size: int
    headers: dict[str, str] = field(default_factory=dict)
    survived: str = ""
    alive: bool = True

    def healthy(self) -> bool:
        """Whether ``/health`` answers 200 now."""
        try:
            answer = httpx.get(f"{self.url}/health", headers=self.headers, timeout=5, verify=tls())
        except httpx.HTTPError:
            return False
        return answer.status_code == 200

    def counters(self, headers: dict[str, str] | None = None) -> Counters:
        """Every sample of ``/metrics`` now."""
        return scrape(self.url, {**self.headers, **(headers or {})})

    def wait_for_death(self, limit_s: float = DEATH_WAIT_S) -> bool:
        """Whether it stays unhealthy; then it counts as dead from now on."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            if self.healthy():
                return False
            time.sleep(POLL_S)
        self.alive = False
        return True

    def root_cause(self) -> RootCause:
        """Only that it is gone."""
        line = f"{self.url} stopped answering; its log is not ours to read, look there"
        return RootCause(line, "")

    def log_size(self) -> int:
        """Always 0: its log is not ours."""
        return 0

    def log_since(self, offset: int) -> str:  # noqa: ARG002
        """Always empty: its log is not ours."""
        return ""


def _models(option: str, url: str, http: httpx.Client) -> list[dict[str, Any]]:
    try:
        answer = http.get("/v1/models")
    except httpx.HTTPError as problem:
        raise EnvironmentProblem(_nothing_there(option, url, problem)) from problem
    if answer.status_code in (401, 403):
        raise UsageError(
            f"{option} {url} answers HTTP {answer.status_code}: give its key with --api-key, or "
            "what a gateway wants with --header 'Name: value'"
        )
    try:
        cards: list[dict[str, Any]] = answer.raise_for_status().json()["data"]
        cards[0]["id"]
    except (httpx.HTTPError, ValueError, LookupError, TypeError) as problem:
        raise UsageError(
            f"{option} {url}/v1/models names no model (HTTP {answer.status_code}): is that a vLLM "
            "server's own URL?"
        ) from problem
    return cards


def _nothing_there(option: str, url: str, problem: httpx.HTTPError) -> str:
    return (
        f"{option} {url}: nothing answers there ({problem}); is the server up, and does it listen "
        "on that host and port?"
    )


def _version(http: httpx.Client) -> str:
    try:
        return str(http.get("/version").raise_for_status().json()["version"])
    except (httpx.HTTPError, ValueError, LookupError, TypeError):
        return ""


def _counters(url: str, headers: dict[str, str]) -> Counters:
    """Empty where ``/metrics`` cannot be read."""
    try:
        return scrape(url, headers)
    except (SuiteError, ValueError):
        return Counters({})


def _block_size(counters: Counters) -> int:
    try:
        return counters.block_size()
    except SuiteError:
        return 0
