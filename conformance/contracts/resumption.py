"""A clause about a request that loses its KV on decode, and has to have it again."""

from __future__ import annotations

from vllm.v1.request import Request

from conformance.contracts.compared import told, wrong_positions
from conformance.contracts.pair import Pair
from conformance.contracts.setting import LENGTH, Setting
from conformance.contracts.tiny_model import BLOCK_SIZE

# The tokens that a request has when it is preempted reach into a block beyond the prompt's.
BEFORE = BLOCK_SIZE


class Resumption(Setting):
    """vLLM 0.32.0: ``Scheduler._preempt_request``, ``resumed_req_ids`` of a step."""

    def test_resumed_request_has_its_kv_bit_for_bit(self, pair: Pair) -> None:
        """A request that decode preempts within its answer, after a load, is resumed with right
        KV of its prompt and of what it said, whether loaded again or computed."""
        request = pair.find(pair.save(LENGTH, self.prefill_params), max_tokens=3 * BEFORE)
        pair.decode.scheduler.add_request(request)
        assert _has_answered(pair, request, BEFORE), _stuck(pair, request)
        tokens = pair.decode.journal.external_tokens[request.request_id]
        assert tokens, "decode's scheduler was told of no token, so nothing was loaded"
        # Nothing of it stays in the prefix cache, as when others have used its blocks meanwhile.
        pair.decode.scheduler.reset_prefix_cache(reset_running_requests=True)
        try:
            resumed = _has_answered(pair, request, BEFORE + 2)
        except Exception as problem:
            raise AssertionError(
                f"resuming raised {problem!r} in the worker, which ends the engine"
            ) from problem
        assert resumed, _stuck(pair, request)
        _must_be_right(pair, request)


def _has_answered(pair: Pair, request: Request, tokens: int) -> bool:
    return pair.until(lambda: len(request.output_token_ids) >= tokens)


def _stuck(pair: Pair, request: Request) -> str:
    return (
        f"decode had said {len(request.output_token_ids)} tokens after {pair.patience_s} s; its "
        f"request is {request.status.name}, preempted {request.num_preemptions} times"
    )


def _must_be_right(pair: Pair, request: Request) -> None:
    decode, computed = pair.decode, request.num_computed_tokens
    blocks = decode.worker.running[request.request_id].blocks
    said = list(request.all_token_ids)
    wrong = wrong_positions(decode.worker.memory, said, blocks, computed)
    assert not wrong, told(wrong, computed)
