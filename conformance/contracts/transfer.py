"""Clauses about the KV itself: what is saved is what is loaded, and nothing else is touched."""

from __future__ import annotations

import pytest
from vllm.v1.request import Request

from conformance.contracts.compared import told, wrong_positions
from conformance.contracts.pair import Pair, Saved
from conformance.contracts.places import Places
from conformance.contracts.setting import LENGTH, Setting
from conformance.contracts.tiny_model import BLOCK_SIZE


class Transfer(Setting):
    """vLLM 0.32.0: ``save_kv_layer``, ``start_load_kv``, ``get_block_ids_with_load_errors``."""

    def test_saved_kv_is_loaded_bit_for_bit(self, pair: Pair) -> None:
        """Every layer's KV that decode is told it has is, bit for bit, what prefill computed,
        although it lies in other blocks of a cache that held zeros."""
        _must_load_right(pair, pair.save(LENGTH, self.prefill_params))

    def test_kv_of_a_prompt_in_two_steps_is_loaded_bit_for_bit(self, pair: Pair) -> None:
        """KV of a prompt that prefill computes in two steps, parted inside a block since another
        prompt takes up most of the first, is loaded bit for bit too (vllm#53314)."""
        _must_load_right(pair, pair.save_in_two_steps(LENGTH, self.prefill_params))

    def test_load_touches_only_its_blocks(self, pair: Pair) -> None:
        """A load writes no block but those allocated to the request."""
        saved, other, decode = pair.save(LENGTH, self.prefill_params), pair.occupy(), pair.decode
        before = decode.worker.memory.copy()
        request = pair.load(saved)
        # The other request grows while the load is under way.
        own = {*decode.journal.blocks[request.request_id], *decode.worker.given[other]}
        for layer, tensor in decode.worker.memory.tensors.items():
            changed = (tensor != before[layer]).flatten(1).any(1).nonzero().flatten().tolist()
            foreign = sorted({*changed} - own)
            assert not foreign, f"{layer}: wrote blocks {foreign}, which are not the request's"

    def test_failed_load_is_reported(self, pair: Pair, places: Places) -> None:
        """KV that cannot be loaded is reported by get_block_ids_with_load_errors() or as a failed
        receive; it is neither taken for loaded nor does it take the engine down."""
        saved = pair.save(LENGTH, self.prefill_params)
        pair.occupy()
        request = pair.find(saved)
        try:
            self._load_damaged(pair, places, saved, request)
        except Exception as problem:
            raise AssertionError(
                f"the failed load raised {problem!r} in the worker, which ends the engine"
            ) from problem
        _judge_failed_load(pair, saved, request)

    def _load_damaged(self, pair: Pair, places: Places, saved: Saved, request: Request) -> None:
        decode = pair.decode
        decode.scheduler.add_request(request)
        output = decode.schedule()
        self.damage_store(pair, places, saved)
        decode.execute(output)
        pair.until(request.is_finished, decode)


def _must_load_right(pair: Pair, saved: Saved) -> None:
    pair.occupy()
    request = pair.load(saved)
    blocks = pair.decode.journal.blocks[request.request_id]
    shared = {*blocks} & {*pair.prefill.journal.blocks[saved.name]}
    assert not shared, f"the contract gave decode prefill's own block ids {sorted(shared)}"
    tokens = pair.decode.journal.external_tokens[request.request_id]
    assert tokens, "decode's scheduler was told of no token, so nothing was loaded"
    wrong = wrong_positions(pair.decode.worker.memory, saved.prompt, blocks, tokens)
    assert not wrong, told(wrong, tokens)


def _judge_failed_load(pair: Pair, saved: Saved, request: Request) -> None:
    journal, name = pair.decode.journal, request.request_id
    blocks, tokens = journal.blocks[name], journal.external_tokens[name]
    wrong = wrong_positions(pair.decode.worker.memory, saved.prompt, blocks, tokens)
    lost = {blocks[at // BLOCK_SIZE] for positions in wrong.values() for at in positions}
    if not lost and not journal.failed_blocks and name not in journal.failed_requests:
        pytest.skip("damage_store() did no damage: write one, or say in `cannot` why not")
    silent = set() if name in journal.failed_requests else lost - journal.failed_blocks
    assert not silent, (
        f"blocks {sorted(silent)} were not loaded, but reported were only "
        f"{sorted(journal.failed_blocks)}; the request ended as {request.status.name}"
    )
