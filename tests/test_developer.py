"""Developer endpoints: what a server that lacks one, refuses or never gets there means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import httpx
import pytest

from conformance import developer
from conformance.client import Client
from conformance.errors import CheckFailed, NotHere


class Scripted:
    """A client whose server answers as told, command after command."""

    def __init__(self, answer: Callable[[str], httpx.Response]) -> None:
        self.server = type("Server", (), {"role": "decode"})
        self.asked: list[str] = []
        self._answer = answer

    def command(self, path: str, **params: str) -> httpx.Response:
        self.asked.append(path + "".join(f" {k}={v}" for k, v in params.items()))
        return self._answer(path)

    def page(self, path: str) -> httpx.Response:
        return self.command(path)


def client(scripted: Scripted) -> Client:
    return cast("Client", cast("Any", scripted))


def says(status: int, body: Any) -> Scripted:
    return Scripted(lambda _: httpx.Response(status, json=body))


@pytest.mark.parametrize("status", [404, 405, 501])
def test_a_server_without_the_endpoint_is_not_at_fault(status: int) -> None:
    with pytest.raises(NotHere, match="VLLM_SERVER_DEV_MODE=1"):
        developer.told(client(says(status, {"detail": "Not Found"})), "/pause", mode="keep")


@pytest.mark.parametrize("status", [400, 500])
def test_a_command_that_fails_is_quoted(status: int) -> None:
    with pytest.raises(CheckFailed, match="Failed to reset the KV connector cache"):
        developer.told(
            client(says(status, {"error": "Failed to reset the KV connector cache."})), "/sleep"
        )


def test_a_reset_includes_the_connectors_cache() -> None:
    scripted = says(200, {"success": True})
    assert developer.reset(client(scripted)) is True
    assert scripted.asked == ["/reset_prefix_cache reset_external=true"]


def test_a_reset_waits_for_blocks_that_are_held() -> None:
    answers = iter([False, False, True])
    scripted = Scripted(lambda _: httpx.Response(200, json={"success": next(answers)}))
    developer.reset_when_free(client(scripted))
    assert len(scripted.asked) == 3


def test_blocks_that_are_never_freed_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(developer, "RESET_LIMIT_S", 0.05)
    with pytest.raises(CheckFailed, match="blocks are still held"):
        developer.reset_when_free(client(says(200, {"success": False})))


def test_a_paused_server_is_resumed_whatever_happens() -> None:
    scripted = says(200, {})
    with pytest.raises(RuntimeError), developer.paused(client(scripted), "wait"):
        raise RuntimeError
    assert scripted.asked == ["/pause mode=wait", "/resume"]


def test_a_server_that_does_not_pause_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(developer, "PAUSE_LIMIT_S", 0.05)
    with pytest.raises(CheckFailed, match="is not paused"):
        developer.until_paused(client(says(200, {"is_paused": False})))
    developer.until_paused(client(says(200, {"is_paused": True})))


def test_what_a_server_runs_with_is_read_where_it_tells() -> None:
    info = {"vllm_config": {"scheduler_config": {"async_scheduling": False}}}
    at = ("scheduler_config", "async_scheduling")
    assert developer.configured(client(says(200, info)), *at) is False
    assert developer.configured(client(says(200, {"vllm_config": "as text"})), *at) is None
    assert developer.configured(client(says(404, {})), *at) is None
