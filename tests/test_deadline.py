"""The limit of an answer holds for the whole of it, not for each of its pieces."""

from __future__ import annotations

import time
from collections.abc import Iterator

import httpx
import pytest

from conformance import deadline


class Drip(httpx.SyncByteStream):
    """A piece each second of a clock that the test holds."""

    def __init__(self, pieces: int, now: list[float]) -> None:
        self._pieces, self._now, self.closed = pieces, now, False

    def __iter__(self) -> Iterator[bytes]:
        for _ in range(self._pieces):
            self._now[0] += 1
            yield b"x"

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    held = [time.monotonic()]
    monkeypatch.setattr(deadline.time, "monotonic", lambda: held[0])
    return held


def client(drip: Drip, limit_s: float) -> httpx.Client:
    answers = httpx.MockTransport(lambda _: httpx.Response(200, stream=drip))
    return httpx.Client(transport=answers, event_hooks=deadline.within(limit_s))


def test_an_answer_within_the_limit_comes_whole(now: list[float]) -> None:
    drip = Drip(3, now)
    assert client(drip, 3).get("http://any").text == "xxx"
    assert drip.closed


def test_one_that_drips_on_is_a_timeout(now: list[float]) -> None:
    drip = Drip(5, now)
    with pytest.raises(httpx.ReadTimeout, match="not whole"):
        client(drip, 3).get("http://any")
    assert drip.closed


def test_so_is_a_stream_of_lines(now: list[float]) -> None:
    with (
        client(Drip(5, now), 3).stream("GET", "http://any") as answer,
        pytest.raises(httpx.ReadTimeout),
    ):
        list(answer.iter_lines())
