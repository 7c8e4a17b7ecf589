"""The first words to a pair: is it quiet, is it two servers, and what does P return?"""

from __future__ import annotations

import time
from dataclasses import dataclass

from conformance.attached_fleet import AttachedFleet
from conformance.bodies import completion, prefill_body
from conformance.client import Client
from conformance.errors import ForeignTraffic
from conformance.handoffs import Handed, Params, Place
from conformance.handoffs.nixl import ParamsFromPrefill
from conformance.metrics import FINISHED, RUNNING, WAITING, Counters, Meter

QUIET_LIMIT_S = 2.0
QUIET_FOR_S = 0.3
POLL_S = 0.03
_COUNTED = ("_total", "_count", "_sum")


@dataclass(frozen=True)
class Hello:
    """What came of one short request to P."""

    returned: Params | None
    one_server: bool
    prefill_delta: Counters


def must_be_quiet(*clients: Client) -> None:
    """Raises :class:`ForeignTraffic` unless all are idle for a moment, at the same time.

    What they have counted by then is what their meters start from.
    """
    deadline = time.monotonic() + QUIET_LIMIT_S
    since, last = time.monotonic(), _state(clients)
    while time.monotonic() - since < QUIET_FOR_S or last[1]:
        if time.monotonic() > deadline:
            raise ForeignTraffic(
                f"requests were running or finishing there for {QUIET_LIMIT_S:.0f} s, and none "
                "was ours"
            )
        time.sleep(POLL_S)
        now = _state(clients)
        if now != last:
            since, last = time.monotonic(), now
    for client, finished in zip(clients, last[0], strict=True):
        client.answered, client.uncertain = round(finished), False


def say_hello(fleet: AttachedFleet, *, detect: bool) -> Hello:
    """Ask P for one token, with NIXL's params where its kind of handoff is to be found out.

    What P then keeps for decode is fetched, so that its blocks are free again.
    """
    body = completion(fleet.prompts.tokens(fleet.decode.server.block_size + 1, "hello"), 1)
    params = ParamsFromPrefill(Place("", "")).prefill_params() if detect else None
    before = fleet.decode.counters()
    meter = Meter.on(fleet.prefill)
    answer = fleet.prefill.ask(
        "completions", Handed(params).into(prefill_body("completions", body))
    )
    delta = meter.delta()
    one_server = _same(fleet.prefill.counters(), fleet.decode.counters(), before)
    returned = answer.kv_transfer_params
    if returned and not one_server:
        fleet.decode.ask("completions", Handed(returned).into(body))
    return Hello(returned, one_server, delta)


def _same(prefill: Counters, decode: Counters, before: Counters) -> bool:
    """Whether decode counted what only P was asked, and everything else alike."""
    if decode.total(FINISHED) == before.total(FINISHED):
        return False
    return _own(prefill) == _own(decode)


def _own(counters: Counters) -> dict[object, float]:
    """vLLM's counters; gauges may change between two readings of one server."""
    return {
        key: value
        for key, value in counters.samples.items()
        if key[0].startswith("vllm:") and key[0].endswith(_COUNTED)
    }


def _state(clients: tuple[Client, ...]) -> tuple[tuple[float, ...], bool]:
    """Finished requests of each, and whether any is under way."""
    seen = [client.counters() for client in clients]
    busy = any(now.total(RUNNING) or now.total(WAITING) for now in seen)
    return tuple(now.total(FINISHED) for now in seen), busy
