"""The client makes a transfer id for both legs and asks P's bootstrap server who P is."""

from __future__ import annotations

import uuid
from typing import Any

import httpx

from conformance.errors import HandoffBroken
from conformance.handoffs.base import Handoff, Params, Place
from conformance.transport import tls

QUERY_LIMIT_S = 10.0


class MooncakeBootstrap(Handoff):
    """The client makes a transfer id for both legs and asks P's bootstrap server who P is.

    P returns no params, so decode can be asked before P has answered (vLLM 0.32.0,
    ``mooncake_connector.py``).
    """

    may_go_at_once = True

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._transfer = f"xfer-{uuid.uuid4()}"

    def prefill_params(self) -> Params | None:
        return {
            "do_remote_decode": True,
            "do_remote_prefill": False,
            "transfer_id": self._transfer,
        }

    def decode_params(self, returned: Params | None) -> Params | None:  # noqa: ARG002
        address = f"http://{self.place.host}:{self.place.port('bootstrap')}"
        if address not in self.place.memo:
            self.place.memo[address] = _engine_id(address)
        return {
            "do_remote_decode": False,
            "do_remote_prefill": True,
            "remote_bootstrap_addr": address,
            "remote_engine_id": self.place.memo[address],
            "transfer_id": self._transfer,
        }


def _engine_id(address: str) -> str:
    """Of data-parallel rank 0. Raises :class:`HandoffBroken`."""
    try:
        answer = httpx.get(f"{address}/query", timeout=QUERY_LIMIT_S, verify=tls())
        answer.raise_for_status()
        ranks: dict[str, dict[str, Any]] = answer.json()
        engine = ranks["0"]["engine_id"]
        if not isinstance(engine, str):
            raise TypeError(f"engine_id is {engine!r}")
        return engine
    except (httpx.HTTPError, ValueError, LookupError, TypeError) as problem:
        raise HandoffBroken(
            f"GET {address}/query should name the engine_id of data-parallel rank 0 of the "
            f"prefill instance: {type(problem).__name__}: {problem}"
        ) from problem
