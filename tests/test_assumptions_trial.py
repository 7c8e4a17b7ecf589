"""How a trial judges: what is a broken assumption, what could not be tried, and what ends it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from doctored import Asked, Doctor, Json, plain

from conformance import metrics
from conformance.answer import Answer
from conformance.assumptions import trial
from conformance.assumptions.once import INSTEAD, Once
from conformance.assumptions.plain import Plain
from conformance.client import Client
from conformance.errors import NotHere, ReferenceFailed, ServerDied
from conformance.report_parts import AssumptionResult
from conformance.serving.deployment import Extra

NAMED = "vLLM 0.33.0 does not do what the suite takes for granted: server/version: "
ORDINARY = ("tiny", Extra())


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "SETTLE_POLL_S", 0.002)
    monkeypatch.setattr(trial, "SETTLE_S", 0.3)


def unversioned(asked: Asked, status: int, body: Json) -> None:
    if asked.path == "/version":
        body.clear()


@pytest.fixture
def wrong(tmp_path: Path) -> Iterator[Plain]:
    with plain(Doctor(answer=unversioned), tmp_path) as server:
        yield server


def once(*, keep_going: bool = False) -> Once:
    return Once("0.33.0", {"tiny"}, keep_going=keep_going)


def held(results: list[AssumptionResult]) -> dict[str, bool | None]:
    return {found.id: found.held for found in results}


def seen(results: list[AssumptionResult], id: str) -> str:
    return next(found.seen for found in results if found.id == id)


def test_a_form_that_cannot_be_read_says_where(wrong: Plain) -> None:
    results = trial.try_all(wrong, intrusive=False)
    told = seen(results, "server/version")
    assert told.startswith("it is not as it is read: KeyError: 'version' (server.py:")


def test_what_changes_a_server_is_left_out_where_others_use_it(tmp_path: Path) -> None:
    with plain(Doctor(), tmp_path, ours=False, started=False) as server:
        results = trial.try_all(server, intrusive=False)
    left = {id for id, state in held(results).items() if state is None}
    assert left == {"counters/idle", "counters/busy", "developer/reset", "developer/pause"}
    assert trial.broken(results) == []


def test_traffic_of_others_breaks_nothing(tmp_path: Path) -> None:
    doctor = Doctor(fault="foreign@counters/finished")
    with plain(doctor, tmp_path, ours=False, started=False) as server:
        results = trial.try_all(server, intrusive=False)
    assert trial.broken(results) == []
    for id in ("counters/finished", "sources/cold"):
        assert held(results)[id] is None
        assert "other traffic is on this server" in seen(results, id)


def test_counting_twice_is_broken_where_nobody_else_asks(tmp_path: Path) -> None:
    with plain(Doctor(fault="foreign@counters/finished"), tmp_path) as server:
        results = trial.try_all(server, intrusive=False)
    assert [found.id for found in trial.broken(results)] == ["counters/finished"]


def test_endpoints_that_are_not_offered_are_not_tried(tmp_path: Path) -> None:
    fault = "no_endpoint@dialects/responses;no_scale_out@dialects/generate"
    with plain(Doctor(fault=fault), tmp_path) as server:
        results = trial.try_all(server, intrusive=False)
    assert held(results)["dialects/messages"] is True
    for id in ("dialects/responses", "dialects/generate"):
        assert held(results)[id] is None
        assert "is not offered" in seen(results, id)


def test_a_server_that_dies_is_no_broken_assumption(
    wrong: Plain, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: Any, **__: Any) -> Answer:
        raise ServerDied("the reference server died: boom")

    monkeypatch.setattr(Client, "ask", dies)
    with pytest.raises(ReferenceFailed, match="while assumptions were tried, the reference server"):
        trial.try_all(wrong, intrusive=False)


def test_the_checks_name_is_the_clients_again(wrong: Plain) -> None:
    wrong.client.check = "nixl/length/B"
    trial.try_all(wrong, intrusive=False)
    assert wrong.client.check == "nixl/length/B"


def test_a_long_sight_is_cut(wrong: Plain) -> None:
    results = trial.try_all(wrong, intrusive=False)
    assert max(len(found.seen) for found in results) <= 301


def test_what_does_not_hold_ends_the_run_and_all_that_comes_after(wrong: Plain) -> None:
    made = once()
    made.must_not_be_broken()
    with pytest.raises(trial.AssumptionsBroken) as caught:
        made.must_hold(wrong.client, wrong.prompts, ORDINARY)
    assert str(caught.value).startswith(NAMED)
    assert str(caught.value).endswith(INSTEAD)
    with pytest.raises(NotHere, match=f"^not tried: {NAMED}"):
        made.must_not_be_broken()
    assert [found.id for found in trial.broken(made.take())] == ["server/version"]


def test_they_are_tried_once_and_told_once(wrong: Plain) -> None:
    made = once(keep_going=True)
    made.must_hold(wrong.client, wrong.prompts, ORDINARY)
    answered = wrong.client.answered
    made.must_hold(wrong.client, wrong.prompts, ORDINARY)
    made.must_not_be_broken()
    assert wrong.client.answered == answered
    assert held(made.take())["server/version"] is False
    assert made.take() == []


@pytest.mark.parametrize("key", [("other", Extra()), ("tiny", Extra(("--x",)))], ids=str)
def test_references_that_are_not_ordinary_are_not_tried(
    wrong: Plain, key: tuple[str, Extra]
) -> None:
    made = once()
    made.must_hold(wrong.client, wrong.prompts, key)
    assert made.take() == []


@pytest.mark.parametrize(
    ("states", "line"),
    [
        ([True, True], "assumptions: 2 hold (vLLM 0.33.0)"),
        ([True, None], "assumptions: 1 hold, 1 could not be tried (vLLM 0.33.0)"),
        ([True, False], "assumptions: 1 hold, a/1 does not (vLLM 0.33.0)"),
        ([False, False], "assumptions: 0 hold, a/0 and a/1 do not (vLLM 0.33.0)"),
    ],
)
def test_all_in_a_line(states: list[bool | None], line: str) -> None:
    results = [
        AssumptionResult(id=f"a/{number}", says="It is.", held=state)
        for number, state in enumerate(states)
    ]
    assert trial.in_brief(results, "0.33.0") == (line, False not in states)
