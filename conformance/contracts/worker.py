"""The worker side of an instance: a worker connector driven by vLLM's own model-runner code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from vllm.config import VllmConfig
from vllm.distributed.kv_transfer import kv_transfer_state
from vllm.distributed.kv_transfer.kv_connector.utils import copy_kv_blocks
from vllm.forward_context import set_forward_context
from vllm.model_executor.layers.attention import Attention
from vllm.model_executor.layers.attention.kv_transfer_utils import maybe_transfer_kv_layer
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.kv_cache_interface import KVCacheConfig
from vllm.v1.outputs import KVConnectorOutput, ModelRunnerOutput
from vllm.v1.worker.kv_connector_model_runner_mixin import KVConnectorModelRunnerMixin as Runner

from conformance.contracts.attention import Batch, kv_of
from conformance.contracts.memory import Memory, slots

SAMPLED = 7


@dataclass
class Running:
    """What a worker remembers of a request: its tokens and its block table."""

    tokens: list[int]
    blocks: list[int] = field(default_factory=list)
    prompt_tokens: int = 0


class Worker:
    """Executes scheduler outputs: the connector's hooks in vLLM's order, made-up KV as forward.

    ``given`` holds, by request, every block that it has ever been given to compute with.
    """

    def __init__(
        self, connector: Any, config: VllmConfig, cache: KVCacheConfig, layers: dict[str, Attention]
    ) -> None:
        self.connector, self.config, self.cache, self.layers = connector, config, cache, layers
        self.memory = Memory(config, cache, connector.get_mem_pool_context())
        self.running: dict[str, Running] = {}
        self.given: defaultdict[str, set[int]] = defaultdict(set)
        connector.register_kv_caches(self.memory.tensors)
        connector.set_host_xfer_buffer_ops(copy_kv_blocks)

    def execute(self, output: SchedulerOutput) -> ModelRunnerOutput:
        """One step, as ``GPUModelRunner.execute_model`` makes it."""
        self._remember(output)
        with _transfer_group(self.connector):
            self.connector.handle_preemptions(output.kv_connector_metadata)
            if not output.total_num_scheduled_tokens:
                return Runner.kv_connector_no_forward(output, self.config)
            return self._forward(output)

    def _remember(self, output: SchedulerOutput) -> None:
        for gone in output.finished_req_ids:
            self.running.pop(gone, None)
        for new in output.scheduled_new_reqs:
            tokens, blocks = list(new.prompt_token_ids), list(new.block_ids[0])
            self.running[new.req_id] = Running(tokens, blocks, len(tokens))
            self.given[new.req_id] |= {*blocks}
        cached = output.scheduled_cached_reqs
        for request, blocks in zip(cached.req_ids, cached.new_block_ids, strict=True):
            known = self.running[request]
            known.blocks = [] if request in cached.resumed_req_ids else known.blocks
            known.blocks += blocks[0] if blocks else []
            self.given[request] |= {*known.blocks}

    def _forward(self, output: SchedulerOutput) -> ModelRunnerOutput:
        before = _computed_before(output)
        names = list(output.num_scheduled_tokens)
        spans = {n: range(before[n], before[n] + output.num_scheduled_tokens[n]) for n in names}
        tables = [self.running[name].blocks for name in names]
        mapping = torch.cat([slots(t, spans[n]) for t, n in zip(tables, names, strict=True)])
        mapping = mapping.to(self.memory.device)
        batch = Batch(tables, [s.start for s in spans.values()], [len(s) for s in spans.values()])
        metadata = batch.metadata(self.config, self.cache, self.layers, mapping)
        by_layer = dict.fromkeys(self.layers, mapping)
        with (
            set_forward_context(metadata, self.config, slot_mapping=by_layer),
            Runner.maybe_get_kv_connector_output(output) as transferred,
        ):
            for number, layer in enumerate(self.layers):
                self._attend(spans, number, layer)
        done = {n: spans[n].stop >= self.running[n].prompt_tokens for n in names}
        return _sampled(done, transferred)

    def _attend(self, spans: dict[str, range], number: int, layer: str) -> None:
        def compute(layer_name: str) -> None:
            for name, span in spans.items():
                known = self.running[name]
                known.tokens += [SAMPLED] * (span.stop - len(known.tokens))
                kv = kv_of(known.tokens, number)[span.start : span.stop]
                self.memory.write(layer_name, known.blocks, span, kv)

        maybe_transfer_kv_layer(compute)(layer)


def _computed_before(output: SchedulerOutput) -> dict[str, int]:
    cached = output.scheduled_cached_reqs
    new = {request.req_id: request.num_computed_tokens for request in output.scheduled_new_reqs}
    return {**new, **dict(zip(cached.req_ids, cached.num_computed_tokens, strict=True))}


def _sampled(done: dict[str, bool], transferred: KVConnectorOutput | None) -> ModelRunnerOutput:
    """``done``: by request, whether its prompt is computed; before that nothing is sampled."""
    return ModelRunnerOutput(
        req_ids=list(done),
        req_id_to_index={name: at for at, name in enumerate(done)},
        sampled_token_ids=[[SAMPLED] if whole else [] for whole in done.values()],
        kv_connector_output=transferred,
    )


@contextmanager
def _transfer_group(connector: Any) -> Iterator[None]:
    """Makes this connector the process's own for a while: P and D share one process here."""
    before = kv_transfer_state._KV_CONNECTOR_AGENT
    kv_transfer_state._KV_CONNECTOR_AGENT = connector
    try:
        yield
    finally:
        kv_transfer_state._KV_CONNECTOR_AGENT = before
