"""A fault: what a connector that has it does otherwise.

Loaded into vLLM's process together with the connector, so nothing here needs more than Python:
the suite reads the same files to know which checks have to see which fault.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from conformance.mutants.landed import Landed

# Tokens that a connector brings, and whether it brings them between scheduler steps.
Found = tuple[int | None, bool]
# Whether blocks are kept for who fetches them, and what the client hands on.
Finished = tuple[bool, dict[str, Any] | None]

EVERYWHERE = ("example", "nixl")
# Cells that no fault of what is transferred concerns: decode computes the last token itself, so a
# prompt of one token needs no KV at all.
UNRELATED = ("start/ready", "length/1")


class Fault:
    """A connector without a fault. Each method is a place where one can sit.

    ``red``: cells that have to see it, ``green``: cells that it does not concern. ``over``: the
    connectors that it is tried on. ``constructed_as``: it sits in the constructor, so servers are
    started with this class of ``constructors.py``. ``ends_servers``: what it breaks stays broken,
    so they have to be started again after it.
    """

    over: ClassVar[tuple[str, ...]] = EVERYWHERE
    red: ClassVar[tuple[str, ...]] = ()
    green: ClassVar[tuple[str, ...]] = ()
    constructed_as: ClassVar[str] = ""
    ends_servers: ClassVar[bool] = False

    def claims(self, request: Any, computed: int, found: Found) -> Found:
        """How many tokens the scheduler is told that the connector brings."""
        return found

    def allocated(self, request: Any, tell: Callable[[], None]) -> None:
        """Blocks were allocated: ``tell`` has the connector plan the load."""
        tell()

    def load(self, requests: list[str], start: Callable[[], None]) -> None:
        """A step in which these requests' KV has to be loaded, or none: ``start`` does it."""
        start()

    def landed(self, kv: Landed) -> None:
        """A request's KV has arrived, and nothing was computed from it yet."""

    def received(self, requests: set[str]) -> set[str]:
        """Requests whose KV is said to have arrived in this step."""
        return requests

    def sent(self, requests: set[str]) -> set[str]:
        """Requests whose KV is said to have been fetched in this step."""
        return requests

    def handed(self, request: Any, answer: Finished) -> Finished:
        """What becomes of a finished request's blocks on prefill, and what the client hands on."""
        return answer

    def freed(self, request: Any, answer: Finished) -> Finished:
        """What becomes of a finished request's blocks on decode."""
        return answer

    def statistics(self, counted: Any) -> Any:
        """What the connector counted since the last step."""
        return counted

    def key(self, parts: dict[str, Any]) -> dict[str, Any]:
        """Of a store: what it is that KV is filed under."""
        return parts

    def folder(self, name: str, known: list[str]) -> str:
        """Of a store: where KV is loaded from, and the names of what is stored there."""
        return name


def is_decode(vllm_config: Any) -> bool:
    """Whether a connector is decode's."""
    return bool(vllm_config.kv_transfer_config.kv_role == "kv_consumer")
