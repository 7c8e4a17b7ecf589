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
_BEGAN = "kv_conformance_began"


def within(limit_s: float) -> dict[str, list[Callable[..., Any]]]:
    """Event hooks of a client whose answers raise :class:`httpx.ReadTimeout` past the limit.

    Looked at whenever something comes; a read in which nothing does is the timeout's to end.
    """
    return {"request": [_begin], "response": [partial(_bound, limit_s)]}


def _begin(request: httpx.Request) -> None:
    request.extensions = {**request.extensions, _BEGAN: time.monotonic()}


def _bound(limit_s: float, response: httpx.Response) -> None:
    deadline = response.request.extensions[_BEGAN] + limit_s
    assert isinstance(response.stream, httpx.SyncByteStream)
    response.stream = _Until(deadline, response.stream, response.request)


class _Until(httpx.SyncByteStream):
    def __init__(
        self, deadline: float, stream: httpx.SyncByteStream, request: httpx.Request
    ) -> None:
        self._deadline, self._stream, self._request = deadline, stream, request

    def __iter__(self) -> Iterator[bytes]:
        for part in self._stream:
            if time.monotonic() > self._deadline:
                raise httpx.ReadTimeout("the answer is not whole", request=self._request)
            yield part

    def close(self) -> None:
        self._stream.close()
