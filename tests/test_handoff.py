"""Handoffs: what prefill returns reaches decode untouched, or the run stops there."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from conformance.errors import HandoffBroken
from conformance.handoffs import HANDOFFS, Place, handoff_named

RETURNED: dict[str, Any] = {
    "do_remote_prefill": True,
    "do_remote_decode": False,
    "remote_engine_id": "engine-7",
    "remote_block_ids": [[4, 5, 6]],
    "remote_host": "127.0.0.1",
    "remote_port": 20123,
    "tp_size": 1,
    "something_new": {"nested": [1, 2]},
}


PLACE = Place("http://127.0.0.1:1", "http://127.0.0.1:2")


def test_a_shared_store_hands_nothing_over() -> None:
    handoff = handoff_named("none")(PLACE)
    assert handoff.prefill_params() is None
    assert handoff.decode_params(None) is None
    assert handoff.decode_params({"remote_host": "h"}) is None


def test_prefill_is_asked_for_a_remote_decode() -> None:
    asked = handoff_named("params_from_prefill")(PLACE).prefill_params()
    assert asked is not None
    assert asked["do_remote_decode"] is True
    assert asked["do_remote_prefill"] is False


def test_each_request_is_asked_with_params_of_its_own() -> None:
    handoff = handoff_named("params_from_prefill")(PLACE)
    first = handoff.prefill_params()
    assert first is not None
    first["remote_host"] = "changed"
    assert handoff.prefill_params() != first


def test_params_are_forwarded_verbatim_and_not_shared() -> None:
    returned = copy.deepcopy(RETURNED)
    forwarded = handoff_named("params_from_prefill")(PLACE).decode_params(returned)
    assert forwarded == RETURNED
    assert forwarded is not returned


@pytest.mark.parametrize("returned", [None, {}])
def test_no_params_is_broken_and_names_what_is_missing(returned: dict[str, Any] | None) -> None:
    with pytest.raises(HandoffBroken) as caught:
        handoff_named("params_from_prefill")(PLACE).decode_params(returned)
    message = str(caught.value)
    assert f"kv_transfer_params={returned!r}" in message
    assert "remote_engine_id" in message
    assert "recompute" in message


@pytest.mark.parametrize(
    "key", ["do_remote_prefill", "remote_engine_id", "remote_block_ids", "remote_host"]
)
@pytest.mark.parametrize("kind", ["absent", "null"])
def test_a_missing_key_is_broken_and_named(key: str, kind: str) -> None:
    returned: dict[str, Any] = {**RETURNED, key: None}
    if kind == "absent":
        del returned[key]
    with pytest.raises(HandoffBroken) as caught:
        handoff_named("params_from_prefill")(PLACE).decode_params(returned)
    told, _, had = str(caught.value).partition("(keys: ")
    assert f"without {key} " in told
    assert "something_new" in had


def test_all_missing_keys_are_named_together() -> None:
    with pytest.raises(HandoffBroken, match="without remote_engine_id, remote_block_ids"):
        handoff_named("params_from_prefill")(PLACE).decode_params(
            {"do_remote_prefill": True, "remote_host": "h"}
        )


def test_every_handoff_explains_itself() -> None:
    for name, kind in HANDOFFS.items():
        assert isinstance(handoff_named(name)(PLACE), kind)
        assert kind.__doc__
