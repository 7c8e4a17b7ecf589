"""Faults of what arrives: each changes KV of the request, and nobody else's."""

from __future__ import annotations

import pytest

from conformance.mutants import catalogue
from conformance.mutants.fault import Fault
from conformance.mutants.landed import Landed

torch = pytest.importorskip("torch")

BLOCKS, HEADS, SIZE, CONTENT = 8, 2, 128, 16
TOKENS = 5 * SIZE + 4
MINE = [6, 1, 4, 2, 7, 3]
OTHERS = [0, 5]
# The rest have to be told of something first, such as another request.
AT_ONCE = (
    *("drop-last-block", "drop-one-layer", "first-chunk-only", "flip-one-bit", "load-zeros"),
    *("shift-by-one-token", "swap-keys-and-values", "swap-two-blocks", "wrong-beyond-length"),
    "wrong-dtype",
)
DAMAGING = [name for name in catalogue.names() if "landed" in vars(catalogue.fault_named(name))]


def landed(seed: int = 0) -> Landed:
    torch.manual_seed(seed)
    layers = {f"layer.{n}": torch.rand(BLOCKS, HEADS, SIZE, CONTENT) + 0.5 for n in range(3)}
    return Landed("request", layers, MINE, TOKENS)


def changed(before: Landed, after: Landed) -> set[str]:
    return {name for name in before.layers if not before.layers[name].equal(after.layers[name])}


@pytest.mark.parametrize("name", AT_ONCE)
def test_a_fault_changes_what_arrived_and_nothing_else(name: str) -> None:
    kv = landed()
    catalogue.fault_named(name)().landed(kv)
    assert changed(landed(), kv)
    for layer, cache in kv.layers.items():
        assert cache[OTHERS].equal(landed().layers[layer][OTHERS]), "blocks of somebody else's"


@pytest.mark.parametrize("name", sorted({*DAMAGING} - {*AT_ONCE}))
def test_other_faults_wait_for_their_moment(name: str) -> None:
    kv = landed()
    catalogue.fault_named(name)().landed(kv)
    assert not changed(landed(), kv)


def test_a_connector_without_a_fault_changes_nothing() -> None:
    kv = landed()
    Fault().landed(kv)
    assert not changed(landed(), kv)


def test_one_layer_is_one_and_one_bit_is_one() -> None:
    kv = landed()
    catalogue.fault_named("drop-one-layer")().landed(kv)
    assert changed(landed(), kv) == {"layer.2"}
    kv = landed()
    catalogue.fault_named("flip-one-bit")().landed(kv)
    (layer,) = changed(landed(), kv)
    bits = kv.layers[layer].view(torch.int32) ^ landed().layers[layer].view(torch.int32)
    assert bits.nonzero().shape[0] == 1
    assert bits.sum() == 1 << 30


def test_keys_are_before_values_in_a_block_of_a_cpu() -> None:
    kv = landed()
    block = kv.layers["layer.0"][MINE[0]].reshape(HEADS, 2, SIZE, CONTENT // 2)
    assert kv.rows("layer.0")[:SIZE].equal(block.permute(2, 0, 1, 3))


def test_stale_kv_is_that_of_the_request_before() -> None:
    fault = catalogue.fault_named("stale-kv")()
    first, second = landed(1), landed(2)
    earlier = first.rows("layer.0")
    fault.landed(first)
    fault.landed(second)
    assert second.rows("layer.0").equal(earlier)


def test_what_is_wrong_under_concurrency_is_right_alone() -> None:
    class Request:
        def __init__(self, name: str) -> None:
            self.request_id = name

    fault = catalogue.fault_named("wrong-under-concurrency")()
    fault.claims(Request("a"), 0, (128, True))
    kv = landed()
    fault.landed(kv)
    assert not changed(landed(), kv)
    fault.claims(Request("b"), 0, (128, True))
    fault.landed(kv)
    assert changed(landed(), kv)
    fault.freed(Request("b"), (False, None))
    kv = landed()
    fault.landed(kv)
    assert not changed(landed(), kv)
