"""An answer has to be whole within a limit, however steadily it drips.

The timeout of httpx is for one read, so a server that sends a byte now and then is waited for
without end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import httpx

# A healthy answer takes seconds even on two cores; longer is a hang.
ANSWER_LIMIT_S = 120.0
# For the servers of a deployment to be ready.
START_LIMIT_S = 420.0
_BEGAN = "kv_conformance_began"


class TooSlow(httpx.ReadTimeout):
    """The limit is over, and the answer is not whole."""


def within(limit_s: float) -> dict[str, list[Callable[..., Any]]]:
    """Event hooks of a client whose answers raise :class:`TooSlow` past the limit.

    Looked at whenever something comes; a read in which nothing does is the timeout's to end.
    """
    return {"request": [_begin], "response": [partial(_bound, limit_s)]}


def _begin(request: Any) -> None:
    request.extensions = {**request.extensions, _BEGAN: time.monotonic()}


def _bound(limit_s: float, response: Any) -> None:
    """httpx takes streams of its own kind alone, and the openai client may have another httpx."""
    kind = type("Until", (_Until, type(response.stream)), {})
    response.stream = kind(response.request.extensions[_BEGAN] + limit_s, response.stream)


class _Until:
    def __init__(self, deadline: float, stream: Any) -> None:
        self._deadline, self._inner = deadline, stream

    def __iter__(self) -> Iterator[bytes]:
        for part in self._inner:
            if time.monotonic() > self._deadline:
                raise TooSlow("the answer is not whole")
            yield part

    def close(self) -> None:
        self._inner.close()
