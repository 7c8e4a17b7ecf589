"""MoRIIO's handoffs against a scripted pair that keeps the connector's contract."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from conformance.errors import HandoffBroken
from conformance.handoffs import Handoff, Place, handoff_named
from conformance.scripted.moriio import (
    BLOCK,
    NOBODYS,
    PORTS,
    Decode,
    EngineDied,
    Hung,
    Outcome,
    Prefill,
)

PROMPT = list(range(100, 100 + 3 * BLOCK + 1))
OTHER = list(range(500, 500 + 3 * BLOCK + 1))
READ, WRITE = ("moriio_read", "moriio_read_by_keys"), ("moriio_write", "moriio_write_by_keys")


@dataclass
class Pair:
    prefill: Prefill
    decode: Decode

    @classmethod
    def of(cls, mode: str) -> Pair:
        network: dict[int, Any] = {}
        return cls(
            Prefill(mode, PORTS["prefill_handshake"], PORTS["prefill_notify"], network),
            Decode(mode, PORTS["decode_handshake"], PORTS["decode_notify"], network),
        )

    def serve(self, way: Handoff, prompt: list[int]) -> Outcome:
        """As a router does."""
        asked, headers = way.prefill_params(), way.headers()
        if not way.at_once:
            handed = way.handed(self.prefill.complete(prompt, headers, asked))
            return self.decode.complete(prompt, handed.headers, handed.params)
        handed = way.handed(None)
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(self.prefill.complete, prompt, headers, asked)
            outcome = self.decode.complete(prompt, handed.headers, handed.params)
            first.result()
        return outcome


def place() -> Place:
    return Place("http://127.0.0.1:1", "http://127.0.0.1:2", ports=PORTS)


def way(name: str, where: Place | None = None) -> Handoff:
    return handoff_named(name)(where or place())


def mode(name: str) -> str:
    return "READ" if name in READ else "WRITE"


@pytest.mark.parametrize("name", READ + WRITE)
def test_decode_answers_from_the_prompts_own_kv(name: str) -> None:
    outcome = Pair.of(mode(name)).serve(way(name), PROMPT)
    promised = len(PROMPT) - (name in READ)
    assert outcome == Outcome(promised, PROMPT[:promised])


def test_a_write_goes_to_both_at_once_and_a_read_cannot() -> None:
    assert [way(name).at_once for name in READ + WRITE] == [False, False, True, True]
    assert [way(name).may_go_at_once for name in READ + WRITE] == [False, False, True, True]


@pytest.mark.parametrize("name", READ + WRITE)
def test_requests_at_the_same_time_get_their_own_kv(name: str) -> None:
    pair, where = Pair.of(mode(name)), place()
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(lambda p: pair.serve(way(name, where), p), (PROMPT, OTHER))
    assert (one.kv, other.kv) == (PROMPT[: len(one.kv)], OTHER[: len(other.kv)])


@pytest.mark.parametrize("name", READ)
def test_a_prefill_that_ends_by_eos_hands_nothing_over(name: str) -> None:
    pair, kind = Pair.of("READ"), way(name)
    returned = pair.prefill.complete(PROMPT, kind.headers(), kind.prefill_params(), eos=True)
    with pytest.raises(HandoffBroken, match="kv_transfer_params=None"):
        kind.decode_params(returned)


@pytest.mark.parametrize(
    "key", ["do_remote_prefill", "remote_engine_id", "remote_block_ids", "transfer_id"]
)
@pytest.mark.parametrize("name", READ)
def test_read_is_broken_when_prefill_returns_a_key_less(name: str, key: str) -> None:
    pair, kind = Pair.of("READ"), way(name)
    returned = pair.prefill.complete(PROMPT, kind.headers(), kind.prefill_params()) or {}
    del returned[key]
    with pytest.raises(HandoffBroken, match=f"should return {key}:"):
        kind.decode_params(returned)


@pytest.mark.parametrize("key", ["remote_host", "remote_handshake_port", "remote_notify_port"])
def test_addresses_are_needed_where_the_request_id_has_none(key: str) -> None:
    pair, kind = Pair.of("READ"), way("moriio_read_by_keys")
    returned = pair.prefill.complete(PROMPT, kind.headers(), kind.prefill_params()) or {}
    del returned[key]
    with pytest.raises(HandoffBroken, match=key):
        kind.decode_params(returned)
    with pytest.raises(EngineDied, match=key):
        pair.decode.complete(PROMPT, kind.headers(), returned)


@pytest.mark.parametrize("name", READ)
def test_read_is_broken_by_another_requests_params(name: str) -> None:
    pair, mine, others = Pair.of("READ"), way(name), way(name)
    returned = pair.prefill.complete(OTHER, others.headers(), others.prefill_params())
    with pytest.raises(HandoffBroken, match="another request's KV"):
        mine.decode_params(returned)


def test_read_without_params_claims_kv_that_nobody_wrote() -> None:
    outcome = Pair.of("READ").decode.complete(PROMPT, {}, None)
    assert outcome == Outcome(len(PROMPT) - 1, [NOBODYS] * (len(PROMPT) - 1))


@pytest.mark.parametrize("name", WRITE)
def test_write_waits_for_ever_under_another_transfer_id(name: str) -> None:
    pair, mine, others = Pair.of("WRITE"), way(name), way(name)
    pair.prefill.complete(PROMPT, mine.headers(), mine.prefill_params())
    with pytest.raises(Hung, match="nobody wrote"):
        pair.decode.complete(PROMPT, mine.headers(), others.decode_params(None))


@pytest.mark.parametrize("name", WRITE)
def test_write_follows_the_donor_whose_handoff_it_is_given(name: str) -> None:
    pair, donor = Pair.of("WRITE"), way(name)
    pair.prefill.complete(OTHER, donor.headers(), donor.prefill_params())
    assert pair.decode.complete(PROMPT, donor.headers(), donor.decode_params(None)).kv == OTHER


@pytest.mark.parametrize(
    ("name", "key", "error"),
    [
        *[(name, "remote_block_ids", EngineDied) for name in WRITE],
        *[(name, "remote_engine_id", EngineDied) for name in WRITE],
        ("moriio_write_by_keys", "remote_notify_port", EngineDied),
    ],
)
def test_write_needs_every_key_on_prefill(name: str, key: str, error: type[Exception]) -> None:
    pair, kind = Pair.of("WRITE"), way(name)
    asked = kind.prefill_params() or {}
    del asked[key]
    with pytest.raises(error, match=key):
        pair.prefill.complete(PROMPT, kind.headers(), asked)


def test_write_needs_the_addresses_in_the_request_id() -> None:
    pair, kind = Pair.of("WRITE"), way("moriio_write")
    with pytest.raises(EngineDied, match="no peer"):
        pair.prefill.complete(PROMPT, {"X-Request-Id": "plain"}, kind.prefill_params())
