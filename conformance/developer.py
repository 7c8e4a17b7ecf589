"""vLLM's developer endpoints, which exist with ``VLLM_SERVER_DEV_MODE=1`` (0.32.0).

``entrypoints/serve/dev`` and ``entrypoints/rl/online``: servers that the suite starts have them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from conformance.client import Client
from conformance.errors import CheckFailed, NotHere
from conformance.metrics import RUNNING, USAGE, WAITING, Counters
from conformance.parity import TOLERANCE

MODES = ("keep", "wait", "abort")
POLL_S = 0.02
# A request that has left P's answer behind is forgotten some steps later.
RESET_LIMIT_S = PAUSE_LIMIT_S = FREE_LIMIT_S = 10.0


def told(client: Client, path: str, **params: str) -> dict[str, Any]:
    """What a server answers to a command. Raises :class:`NotHere` where it knows no such command.

    Raises :class:`CheckFailed` for any other error.
    """
    answer = client.command(path, **params)
    if answer.status_code in (404, 405, 501):
        raise NotHere(
            f"the {client.server.role} server has no {path} (HTTP {answer.status_code}: "
            f"{answer.text[:200]}); vLLM has it with VLLM_SERVER_DEV_MODE=1"
        )
    if answer.status_code >= 400:
        raise CheckFailed(
            f"HTTP {answer.status_code} from the {client.server.role} server to {path}: "
            f"{answer.text[:400]}"
        )
    return _json(answer)


def reset(client: Client) -> bool:
    """Empty the prefix cache and the connector's; whether the server says that it did.

    It does not while blocks are held, such as those that decode has yet to fetch.
    """
    return bool(told(client, "/reset_prefix_cache", reset_external="true").get("success"))


def reset_when_free(client: Client) -> None:
    """Reset once nothing is held any more. Raises :class:`CheckFailed` when that never comes."""
    deadline = time.monotonic() + RESET_LIMIT_S
    while not reset(client):
        if time.monotonic() > deadline:
            raise CheckFailed(
                f"/reset_prefix_cache of the {client.server.role} server says success=false for "
                f"{RESET_LIMIT_S:.0f} s, although no request is under way: blocks are still held"
            )
        time.sleep(POLL_S)


@contextmanager
def paused(client: Client, mode: str) -> Iterator[None]:
    """A server that schedules nothing new within; it is resumed at the end, whatever happens.

    ``mode``: what becomes of requests that are under way: one of :data:`MODES`.
    """
    told(client, "/pause", mode=mode)
    try:
        yield
    finally:
        told(client, "/resume")


def until_paused(client: Client) -> None:
    """Until a server that was told to pause schedules nothing new any more.

    ``/pause`` itself may be answered much later, once nothing is held for decode.
    """
    deadline = time.monotonic() + PAUSE_LIMIT_S
    while not _json(client.page("/is_paused")).get("is_paused"):
        if time.monotonic() > deadline:
            raise CheckFailed(
                f"the {client.server.role} server is not paused {PAUSE_LIMIT_S:.0f} s after /pause"
            )
        time.sleep(POLL_S)


def until_busy(client: Client) -> None:
    """Until a server has requests under way. Raises :class:`CheckFailed` when it never has."""
    _until(
        lambda now: now.total(RUNNING) + now.total(WAITING) > 0,
        client,
        "has no request under way",
    )


def until_free(client: Client) -> None:
    """Until a server has given back every block. Raises :class:`CheckFailed` when it never does."""
    _until(lambda now: now.total(USAGE) == 0, client, f"does not give back every block ({USAGE})")


def _until(holds: Callable[[Counters], bool], client: Client, otherwise: str) -> None:
    deadline = time.monotonic() + FREE_LIMIT_S
    while not holds(client.counters()):
        if time.monotonic() > deadline:
            raise CheckFailed(
                f"the {client.server.role} server {otherwise} within {FREE_LIMIT_S:.0f} s"
            )
        time.sleep(POLL_S)


def configured(client: Client, section: str, name: str) -> Any:
    """A value of the configuration that a server says it runs with; ``None`` where it tells none.

    ``/server_info`` shows what became of the command line, such as options that a platform
    ignores.
    """
    return (_told(client, "vllm_config").get(section) or {}).get(name)


def variable(client: Client, name: str) -> Any:
    """A variable of vLLM's as a server says it took it; ``None`` where it tells none."""
    return _told(client, "vllm_env").get(name)


def _told(client: Client, part: str) -> dict[str, Any]:
    answer = client.page("/server_info?config_format=json")
    found = _json(answer).get(part) if answer.status_code == 200 else None
    return found if isinstance(found, dict) else {}


def dtype_of(client: Client) -> str:
    """The dtype that a server runs its model in, as ``parity`` knows it; ``auto`` if it is untold.

    ``/server_info`` writes it as torch does: ``torch.float32`` (0.32.0).
    """
    told = str(configured(client, "model_config", "dtype")).removeprefix("torch.")
    return told if told in TOLERANCE else "auto"


def budget_of(client: Client) -> int | None:
    """Tokens that one scheduler step of a server may compute; ``None`` if it is untold."""
    told = configured(client, "scheduler_config", "max_num_batched_tokens")
    return int(told) if told else None


def served_models(client: Client) -> list[str]:
    """Names under which a server serves, adapters included."""
    return [card.get("id", "") for card in _json(client.page("/v1/models")).get("data", ())]


def _json(answer: httpx.Response) -> dict[str, Any]:
    try:
        found = answer.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
