"""The handoff of LMCache's disaggregated prefill, against a scripted pair with its contract."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from conformance.errors import HandoffBroken
from conformance.handoffs import Handoff, Place, handoff_named, lmcache_disagg
from conformance.scripted.lmcache import Decode, EngineDied, Outcome, Prefill
from conformance.serving.ports import PortRange

PROMPT, OTHER = list(range(100, 130)), list(range(500, 530))
INIT, ALLOC = 7300, 7400


@dataclass
class Pair:
    prefill: Prefill
    decode: Decode
    place: Place

    def way(self) -> Handoff:
        return handoff_named("lmcache_disagg")(self.place)

    def serve(self, prompt: list[int]) -> Outcome:
        kind = self.way()
        returned = self.prefill.complete(prompt, kind.prefill_params())
        assert kind.handed(returned).params is None
        return self.decode.complete(prompt)


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    monkeypatch.setattr(lmcache_disagg, "WRITTEN_LIMIT_S", 0.5)
    lease = PortRange.parse("20000-29999").lease()
    decode = Decode(INIT, ALLOC)
    prefill = Prefill(lease.port, {(INIT, ALLOC): decode})
    ports = {"pd_proxy": lease.port, "peer_init": INIT, "peer_alloc": ALLOC}
    yield Pair(prefill, decode, Place("http://a:1", "http://b:2", ports=ports))
    prefill.close()
    lease.release()


def test_decode_is_asked_once_the_kv_is_written(pair: Pair) -> None:
    assert pair.serve(PROMPT) == Outcome(len(PROMPT) - 1, PROMPT[:-1])


def test_a_decode_that_does_not_wait_recomputes(pair: Pair) -> None:
    pair.prefill.complete(PROMPT, pair.way().prefill_params())
    assert pair.decode.complete(PROMPT).external == 0


def test_requests_at_the_same_time_get_their_own_kv(pair: Pair) -> None:
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(pair.serve, (PROMPT, OTHER))
    assert (one.kv, other.kv) == (PROMPT[:-1], OTHER[:-1])


def test_a_prefill_whose_lmcache_did_not_start_is_broken(pair: Pair) -> None:
    pair.prefill.degraded = True
    with pytest.raises(HandoffBroken, match=r"kv_transfer_params=None.*recompute"):
        pair.serve(PROMPT)


def test_a_prefill_that_never_writes_is_broken(pair: Pair) -> None:
    kind = pair.way()
    asked = kind.prefill_params() or {}
    del asked["disagg_spec"]
    returned = pair.prefill.complete(PROMPT, asked)
    with pytest.raises(HandoffBroken, match="received instead: nothing"):
        kind.decode_params(returned)


def test_word_of_another_request_is_not_taken_for_this_ones(pair: Pair) -> None:
    kind = pair.way()
    kind.prefill_params()
    pair.prefill.tell("somebody-else")
    with pytest.raises(HandoffBroken, match="somebody-else"):
        kind.decode_params({"first_tok": 7})


def test_prefill_returns_nothing_without_being_asked_to(pair: Pair) -> None:
    kind = pair.way()
    asked = kind.prefill_params() or {}
    del asked["ret_first_tok"]
    with pytest.raises(HandoffBroken, match="should return first_tok"):
        kind.decode_params(pair.prefill.complete(PROMPT, asked))


@pytest.mark.parametrize(
    "key", ["req_id", "receiver_host", "receiver_init_port", "receiver_alloc_port"]
)
def test_prefill_needs_every_key(pair: Pair, key: str) -> None:
    asked = pair.way().prefill_params() or {}
    del asked["disagg_spec"][key]
    with pytest.raises(EngineDied, match=key):
        pair.prefill.complete(PROMPT, asked)


def test_ports_are_lists(pair: Pair) -> None:
    asked = pair.way().prefill_params() or {}
    asked["disagg_spec"]["receiver_init_port"] = INIT
    with pytest.raises(EngineDied, match="not subscriptable"):
        pair.prefill.complete(PROMPT, asked)
