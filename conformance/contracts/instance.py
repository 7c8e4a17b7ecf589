"""One vLLM instance without a model: the real scheduler, a real worker connector, real KV cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vllm.config import VllmConfig, set_current_vllm_config
from vllm.distributed import (
    init_distributed_environment,
    initialize_model_parallel,
    model_parallel_is_initialized,
)
from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory
from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorRole
from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import get_hash_fn_by_name
from vllm.v1.core.kv_cache_utils import (
    get_request_block_hasher,
    init_none_hash,
    resolve_kv_cache_block_sizes,
)
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.request import Request
from vllm.v1.structured_output import StructuredOutputManager

from conformance.contracts.journal import Journal
from conformance.contracts.memory import attention_layers, cache_config
from conformance.contracts.places import environment
from conformance.contracts.tiny_model import vllm_config
from conformance.contracts.worker import Worker


@dataclass(frozen=True)
class Setup:
    """What one side is started with: ``KVTransferConfig`` fields and environment variables."""

    transfer: Mapping[str, Any]
    env: Mapping[str, str] = field(default_factory=dict)


class Bare:
    """The real configuration of one side, from which connectors can be created."""

    def __init__(self, setup: Setup, folder: Path) -> None:
        self.setup = setup
        with environment(setup.env):
            self.config = vllm_config(folder, setup.transfer)
            _parallel_groups(folder, self.config)
            self.layers = attention_layers(self.config)
            self.cache = cache_config(self.config, self.layers)

    def create(self, role: KVConnectorRole) -> Any:
        """A connector, through vLLM's own factory."""
        with environment(self.setup.env), set_current_vllm_config(self.config):
            return KVConnectorFactory.create_connector(self.config, role, self.cache)


class Instance(Bare):
    """A prefill or decode instance that is stepped by hand."""

    def __init__(self, setup: Setup, folder: Path) -> None:
        super().__init__(setup, folder)
        self.journal = Journal()
        connector = self.create(KVConnectorRole.WORKER)
        with environment(setup.env), set_current_vllm_config(self.config):
            self.worker = Worker(connector, self.config, self.cache, self.layers)
            self.scheduler = self._scheduler()
            self._shake_hands()
        self.journal.watch(self.scheduler.connector)
        self._hasher = _block_hasher(self.config, self.scheduler.hash_block_size)

    def request(
        self, name: str, prompt: Sequence[int], params: Any = None, max_tokens: int = 1
    ) -> Request:
        """A request as the engine core makes it; ``params`` are its ``kv_transfer_params``."""
        extra = {"kv_transfer_params": params} if params else None
        sampling = SamplingParams(max_tokens=max_tokens, extra_args=extra)
        sampling.update_from_generation_config({}, eos_token_id=None)
        return Request(name, list(prompt), sampling, None, block_hasher=self._hasher)

    def schedule(self) -> SchedulerOutput:
        """The scheduler's half of a step."""
        with environment(self.setup.env):
            return self.scheduler.schedule()

    def execute(self, output: SchedulerOutput) -> None:
        """The worker's half of a step, and what the scheduler makes of its result."""
        with environment(self.setup.env):
            result = self.worker.execute(output)
            self.journal.executed(output.finished_req_ids, result.kv_connector_output)
            self.scheduler.update_from_output(output, result)

    def step(self) -> None:
        """One whole step."""
        self.execute(self.schedule())

    def shutdown(self) -> None:
        """Ends both connectors, as the engine does."""
        self.scheduler.shutdown()
        self.worker.connector.shutdown()

    def _scheduler(self) -> Scheduler:
        block, hashed = resolve_kv_cache_block_sizes(self.cache, self.config)
        return Scheduler(
            vllm_config=self.config,
            kv_cache_config=self.cache,
            structured_output_manager=StructuredOutputManager(self.config),
            block_size=block,
            hash_block_size=hashed,
        )

    def _shake_hands(self) -> None:
        metadata = self.worker.connector.get_handshake_metadata()
        if metadata is not None:
            self.scheduler.connector.set_xfer_handshake_metadata_pp_aware({(0, 0): metadata})


def _block_hasher(config: VllmConfig, size: int) -> Any:
    function = get_hash_fn_by_name(config.cache_config.prefix_caching_hash_algo)
    init_none_hash(function)
    return get_request_block_hasher(size, function)


def _parallel_groups(folder: Path, config: VllmConfig) -> None:
    """Groups of one rank each: attention layers and some connectors ask for theirs."""
    if model_parallel_is_initialized():
        return
    with set_current_vllm_config(config):
        init_distributed_environment(1, 0, f"file://{folder / 'rendezvous'}", 0, backend="gloo")
        initialize_model_parallel()
