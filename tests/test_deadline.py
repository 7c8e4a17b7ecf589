"""The limit of an answer holds for the whole of it, not for each of its pieces."""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator
from typing import Any

import httpx
import openai
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


def test_so_is_one_to_the_openai_client(now: list[float]) -> None:
    """Which may come with another httpx."""
    own = [each for each in openai.DefaultHttpxClient.__mro__ if each.__name__ == "Client"]
    library: Any = importlib.import_module(own[0].__module__.split(".")[0])
    kind = type("Own", (Drip, library.SyncByteStream), {})
    answers = library.MockTransport(lambda _: library.Response(200, stream=kind(5, now)))
    made = openai.OpenAI(
        api_key="unused",
        base_url="http://any/v1",
        max_retries=0,
        http_client=openai.DefaultHttpxClient(transport=answers, event_hooks=deadline.within(3)),
    )
    with pytest.raises(openai.APIConnectionError) as caught:
        made.models.list()
    assert isinstance(caught.value.__cause__, deadline.TooSlow)


def test_so_is_a_stream_of_lines(now: list[float]) -> None:
    with (
        client(Drip(5, now), 3).stream("GET", "http://any") as answer,
        pytest.raises(httpx.ReadTimeout),
    ):
        list(answer.iter_lines())
