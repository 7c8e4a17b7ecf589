"""The two legs of a request: one after the other, or both on their way at once."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from sample_profiles import profile

from conformance import stores
from conformance.answer import Answer, from_response
from conformance.bodies import completion
from conformance.client import Body, Client, Endpoint
from conformance.errors import CheckFailed, HandoffBroken
from conformance.handoffs import Handoff, Headers, Params, Place
from conformance.metrics import Counters, parse
from conformance.pair import Ask, Pair

BODY = completion([5, 6, 7])
LIMIT_S = 20.0


def answer(text: str, params: Params | None = None) -> Answer:
    choice = {"index": 0, "text": text, "finish_reason": "length", "prompt_token_ids": [5, 6, 7]}
    usage = {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}
    return from_response({"choices": [choice], "usage": usage, "kv_transfer_params": params})


class Meeting(Handoff):
    """Both legs carry an id that the client made."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._id = f"id-{len(place.memo)}"
        place.memo[self._id] = True

    def headers(self) -> Headers:
        return {"X-Request-Id": self._id}

    def prefill_params(self) -> Params | None:
        return {"meet": self._id}

    def decode_params(self, returned: Params | None) -> Params | None:
        return {"meet": self._id, "returned": returned}


class AtOnce(Meeting):
    """The same, and decode must not wait."""

    at_once = True


class Refuses(Handoff):
    """Prefill never returns what is needed."""

    def decode_params(self, returned: Params | None) -> Params | None:
        raise HandoffBroken(f"returned {returned}")


@dataclass
class Journal:
    """What the servers saw, in order."""

    lines: list[str] = field(default_factory=list)
    bodies: dict[str, Body] = field(default_factory=dict)
    headers: dict[str, Headers] = field(default_factory=dict)
    decode_asked: threading.Event = field(default_factory=threading.Event)


@dataclass
class FakeClient:
    """A server that answers at once, or, as ``patient`` prefill, once decode was asked."""

    role: str
    journal: Journal
    patient: bool = False
    problem: Exception | None = None
    block_size: int = 2

    @property
    def server(self) -> FakeClient:
        return self

    def ask(self, endpoint: Endpoint, body: Body, headers: Headers | None = None) -> Answer:
        journal = self.journal
        journal.lines.append(f"{self.role} asked")
        journal.bodies[self.role], journal.headers[self.role] = body, headers or {}
        if self.role == "decode":
            journal.decode_asked.set()
        if self.patient:
            assert journal.decode_asked.wait(LIMIT_S), "decode was not asked meanwhile"
        if self.problem:
            raise self.problem
        journal.lines.append(f"{self.role} answered")
        return answer(self.role, {"of": "prefill"} if self.role == "prefill" else None)

    def counters(self) -> Counters:
        """Grows with what prefill answered, two readings late."""
        self.journal.lines.append("counted")
        late = self.journal.lines.count("counted") > 3
        return parse(f"stored_total {float(late)}\n")


def pair(
    kind: type[Handoff], journal: Journal, *, patient: bool = False, **changes: Any
) -> tuple[Pair, FakeClient, FakeClient]:
    prefill, decode = FakeClient("prefill", journal, patient), FakeClient("decode", journal)
    fields: dict[str, Any] = {
        "profile": profile(**changes),
        "handoff": kind,
        "place": Place("http://p", "http://d"),
        "prefill": cast("Client", cast("Any", prefill)),
        "decode": cast("Client", cast("Any", decode)),
        "folders": dict[str, Path](),
        "token_budget": None,
    }
    unused = dict.fromkeys(("model", "oracle", "prompts"))
    return Pair(**fields, **cast("Any", unused)), prefill, decode


def ask(**fields: Any) -> Ask:
    return Ask("three tokens", "completions", lambda _: BODY, **fields)


ONE_AFTER_THE_OTHER = ["prefill asked", "prefill answered", "decode asked", "decode answered"]


def test_as_a_rule_decode_is_asked_once_prefill_has_answered() -> None:
    journal = Journal()
    legs = pair(Meeting, journal)[0].both_legs(ask(), BODY)
    assert journal.lines == ONE_AFTER_THE_OTHER
    assert (legs.prefill.text, legs.decode.text) == ("prefill", "decode")
    assert journal.bodies["decode"]["kv_transfer_params"]["returned"] == {"of": "prefill"}


@pytest.mark.parametrize(
    ("kind", "asked"), [(AtOnce, ask()), (Meeting, ask(at_once=True))], ids=["kind", "ask"]
)
def test_at_once_decode_is_asked_before_prefill_has_answered(
    kind: type[Handoff], asked: Ask
) -> None:
    journal = Journal()
    legs = pair(kind, journal, patient=True)[0].both_legs(asked, BODY)
    assert journal.lines.index("decode asked") < journal.lines.index("prefill answered")
    assert (legs.prefill.text, legs.decode.text) == ("prefill", "decode")
    assert journal.bodies["decode"]["kv_transfer_params"]["returned"] is None


@pytest.mark.parametrize("asked", [ask(), ask(at_once=True)], ids=["in turn", "at once"])
def test_both_legs_of_a_request_are_of_one_handoff(asked: Ask) -> None:
    journal = Journal()
    made = pair(Meeting, journal)[0]
    met = set()
    for _ in range(2):
        made.both_legs(asked, BODY)
        first, second = journal.bodies["prefill"], journal.bodies["decode"]
        met.add(first["kv_transfer_params"]["meet"])
        assert first["kv_transfer_params"]["meet"] == second["kv_transfer_params"]["meet"]
        assert journal.headers["prefill"] == journal.headers["decode"]
        assert journal.headers["decode"]["X-Request-Id"] in met
    assert len(met) == 2


def test_prefill_is_asked_for_one_token_at_once_too() -> None:
    journal = Journal()
    pair(AtOnce, journal)[0].both_legs(ask(), BODY)
    assert journal.bodies["prefill"]["max_tokens"] == 1
    assert journal.bodies["decode"]["max_tokens"] == BODY["max_tokens"]


def test_token_ids_have_to_be_waited_for() -> None:
    journal = Journal()
    pair(Meeting, journal)[0].both_legs(ask(at_once=True, reuse_ids=True), BODY)
    assert journal.lines == ONE_AFTER_THE_OTHER
    assert journal.bodies["decode"]["kv_transfer_params"]["prompt_token_ids"] == [5, 6, 7]


@pytest.mark.parametrize("broken", ["prefill", "decode"])
def test_either_leg_that_fails_at_once_fails_the_request(broken: str) -> None:
    journal = Journal()
    made, prefill, decode = pair(AtOnce, journal, patient=True)
    problem = CheckFailed(f"{broken} said no")
    (prefill if broken == "prefill" else decode).problem = problem
    with pytest.raises(CheckFailed) as caught:
        made.both_legs(ask(), BODY)
    assert caught.value is problem


@pytest.mark.parametrize(("asked", "requests"), [(ask(), 2), (ask(at_once=True), 0)])
def test_decode_is_never_asked_without_what_the_handoff_needs(asked: Ask, requests: int) -> None:
    journal = Journal()
    with pytest.raises(HandoffBroken):
        pair(Refuses, journal)[0].both_legs(asked, BODY)
    assert journal.lines == ONE_AFTER_THE_OTHER[:requests]


@pytest.mark.parametrize("side", ["prefill", "decode"])
def test_decode_is_asked_once_the_store_has_settled(
    monkeypatch: pytest.MonkeyPatch, side: str
) -> None:
    monkeypatch.setattr(stores, "POLL_S", 0.001)
    journal = Journal()
    settle = {"side": side, "metric": "stored_total"}
    pair(Meeting, journal, settle=settle)[0].both_legs(ask(), BODY)
    legs = [line for line in journal.lines if line != "counted"]
    assert legs == ONE_AFTER_THE_OTHER
    between = journal.lines[journal.lines.index("prefill answered") :]
    assert between.index("decode asked") > 3 + stores.STEADY_READINGS - 1


def test_nothing_is_waited_for_where_nothing_is_promised() -> None:
    journal = Journal()
    made, _, decode = pair(Meeting, journal, settle={"metric": "stored_total"})
    decode.block_size = 16  # three tokens are less than a block
    made.both_legs(ask(), BODY)
    assert journal.lines.count("counted") == 1, "the reading from before the request alone"
