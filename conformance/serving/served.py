"""What a check needs of a vLLM server, whoever started it."""

from __future__ import annotations

from typing import Literal, Protocol

from conformance.metrics import Counters
from conformance.serving.rootcause import RootCause

ServerRole = Literal["prefill", "decode", "reference", "router"]


class Served(Protocol):
    """A running vLLM server: one of ours, or one that somebody else started.

    ``headers``: sent with every request, such as an API key. ``block_size``: tokens per block.
    ``survived``: an exception that it logged before it was ready, or nothing.
    """

    role: ServerRole
    model: str
    url: str
    block_size: int
    headers: dict[str, str]
    survived: str

    @property
    def alive(self) -> bool:
        """Whether it runs, as far as can be known without asking it."""

    def healthy(self) -> bool:
        """Whether ``/health`` answers 200 now."""

    def counters(self, headers: dict[str, str] | None = None) -> Counters:
        """Every sample of ``/metrics`` now. ``headers``: beside its own."""

    def wait_for_death(self) -> bool:
        """Whether the server ends soon, as one with a dead engine does."""

    def root_cause(self) -> RootCause:
        """Why the server ended."""

    def log_size(self) -> int:
        """Bytes logged so far; 0 where its log is not ours."""

    def log_since(self, offset: int) -> str:
        """What was logged after that; empty where its log is not ours."""
