"""What is used of a KV cache once nobody needs it any more: nothing more than before.

Blocks that wait for a decode instance stay in use until it fetched them, or told that it will not
(vllm#18591, vllm#50792, vllm#57596: they never came free).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from conformance import expect
from conformance.case import Case
from conformance.client import Client
from conformance.metrics import USAGE

LET_GO_LIMIT_S = 10.0
POLL_S = 0.05


@contextmanager
def lets_go(case: Case, *clients: Client) -> Iterator[None]:
    """Servers use no more of their KV cache afterwards than before, soon.

    A server whose ``/metrics`` does not tell is left out.
    """
    before = [client.counters() for client in clients]
    yield
    for client, counted in zip(clients, before, strict=True):
        if counted.has(USAGE):
            _must_come_down(case, client, counted.total(USAGE))


def _must_come_down(case: Case, client: Client, before: float) -> None:
    deadline = time.monotonic() + LET_GO_LIMIT_S
    while (used := client.counters().total(USAGE)) > before and time.monotonic() < deadline:
        time.sleep(POLL_S)
    role = client.server.role
    case.saw(f"{USAGE} of {role} before and after", (before, used))
    within = f"{role} should use no more than {before} of its KV cache within {LET_GO_LIMIT_S} s"
    expect.true(used <= before, within, used)
