"""The handoff of OffloadingConnector's p2p tier, against a scripted pair with its contract."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from conformance.errors import UsageError
from conformance.handoffs import Handoff, Place, handoff_named
from conformance.scripted.tier_p2p import BLOCK, Decode, LoadFailed, Outcome, Prefill

PROMPT = list(range(100, 100 + 3 * BLOCK + 1))
OTHER = list(range(500, 500 + 3 * BLOCK + 1))
PORT = 5710
WHOLE = Outcome(3 * BLOCK, PROMPT[: 3 * BLOCK])


def way() -> Handoff:
    ports = {"prefill_p2p": PORT, "decode_p2p": 5711}
    return handoff_named("tier_p2p")(Place("http://a:1", "http://b:2", ports=ports))


@pytest.fixture
def pair() -> tuple[Prefill, Decode]:
    prefill = Prefill(PORT)
    return prefill, Decode({PORT: prefill})


def test_decode_gets_every_whole_block(pair: tuple[Prefill, Decode]) -> None:
    (prefill, decode), kind = pair, way()
    handed = kind.handed(prefill.complete(PROMPT, kind.prefill_params()))
    assert decode.complete(PROMPT, handed.params) == WHOLE


def test_decode_may_ask_before_prefill_has_answered(pair: tuple[Prefill, Decode]) -> None:
    (prefill, decode), kind = pair, way()
    assert kind.may_go_at_once
    assert not kind.at_once
    with ThreadPoolExecutor(1) as pool:
        outcome = pool.submit(decode.complete, PROMPT, kind.handed(None).params)
        prefill.complete(PROMPT, kind.prefill_params())
        assert outcome.result() == WHOLE


def test_requests_at_the_same_time_get_their_own_kv(pair: tuple[Prefill, Decode]) -> None:
    prefill, decode = pair
    one, other = way(), way()
    prefill.complete(PROMPT, one.prefill_params())
    prefill.complete(OTHER, other.prefill_params())
    assert decode.complete(OTHER, other.decode_params(None)).kv == OTHER[: 3 * BLOCK]
    assert decode.complete(PROMPT, one.decode_params(None)).kv == PROMPT[: 3 * BLOCK]


def test_another_requests_id_serves_nothing(pair: tuple[Prefill, Decode]) -> None:
    (prefill, decode), donor = pair, way()
    prefill.complete(OTHER, donor.prefill_params())
    with pytest.raises(LoadFailed):
        decode.complete(PROMPT, donor.decode_params(None))


@pytest.mark.parametrize("key", ["kv_request_id", "remote_host", "remote_port"])
def test_decode_recomputes_without_a_key(pair: tuple[Prefill, Decode], key: str) -> None:
    (prefill, decode), kind = pair, way()
    prefill.complete(PROMPT, kind.prefill_params())
    params: dict[str, Any] = kind.decode_params(None) or {}
    del params["remote_prefiller"][key]
    assert decode.complete(PROMPT, params).external == 0


@pytest.mark.parametrize("params", [None, {}, {"remote_decoder": {}}])
def test_prefill_keeps_its_kv_without_the_id(
    pair: tuple[Prefill, Decode], params: dict[str, Any] | None
) -> None:
    (prefill, decode), kind = pair, way()
    prefill.complete(PROMPT, params)
    with pytest.raises(LoadFailed):
        decode.complete(PROMPT, kind.decode_params(None))


def test_decode_is_sent_to_prefills_side_channel_and_not_its_own() -> None:
    prefiller = (way().decode_params(None) or {})["remote_prefiller"]
    assert (prefiller["remote_host"], prefiller["remote_port"]) == ("127.0.0.1", PORT)


def test_without_a_side_channel_port_the_error_says_how_to_give_one() -> None:
    kind = handoff_named("tier_p2p")(Place("http://a:1", "http://b:2"))
    with pytest.raises(UsageError, match="--handoff-port prefill_p2p=PORT"):
        kind.decode_params(None)
