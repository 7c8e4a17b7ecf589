"""A correct connector: a folder of files, saved layer by layer and loaded synchronously."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorBase_V1,
    KVConnectorMetadata,
)


@dataclass
class Job:
    """``tokens`` positions of a prompt, from ``start`` on, lie in these ``blocks``."""

    request: str
    key: str
    blocks: list[int]
    start: int
    tokens: int


@dataclass
class Jobs(KVConnectorMetadata):
    saves: list[Job] = field(default_factory=list)
    loads: list[Job] = field(default_factory=list)


class RightConnector(KVConnectorBase_V1):
    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any) -> None:
        super().__init__(vllm_config, role, kv_cache_config)
        self.block = vllm_config.cache_config.block_size
        self.folder = Path(self._kv_transfer_config.kv_connector_extra_config["folder"])
        self.loads: dict[str, Job] = {}
        self.unsaved: dict[str, Job] = {}
        self.caches: dict[str, torch.Tensor] = {}
        self.failed: set[int] = set()

    # Scheduler side

    def get_num_new_matched_tokens(
        self, request: Any, num_computed_tokens: int
    ) -> tuple[int | None, bool]:
        usable = self.usable(len(request.prompt_token_ids))
        stored = usable and self.stored(self.key(request.prompt_token_ids[:usable]))
        return (max(usable - num_computed_tokens, 0) if stored else 0), False

    def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int) -> None:
        if num_external_tokens:
            usable = self.usable(len(request.prompt_token_ids))
            self.loads[request.request_id] = Job(
                request.request_id,
                self.key(request.prompt_token_ids[:usable]),
                list(blocks.get_block_ids()[0]),
                usable - num_external_tokens,
                usable,
            )

    def build_connector_meta(self, scheduler_output: Any) -> Jobs:
        jobs = Jobs(loads=list(self.loads.values()))
        scheduled, old = (
            scheduler_output.num_scheduled_tokens,
            scheduler_output.scheduled_cached_reqs,
        )
        computed = dict(zip(old.req_ids, old.num_computed_tokens, strict=True))
        for new in scheduler_output.scheduled_new_reqs:
            computed[new.req_id] = new.num_computed_tokens
            usable = self.usable(len(new.prompt_token_ids))
            if usable and new.req_id not in self.loads:
                key = self.key(new.prompt_token_ids[:usable])
                self.unsaved[new.req_id] = Job(new.req_id, key, list(new.block_ids[0]), 0, usable)
        for name, added in zip(old.req_ids, old.new_block_ids, strict=True):
            if name in self.unsaved and added:
                self.unsaved[name].blocks += added[0]
        for name in [name for name in self.unsaved if name in scheduled]:
            if self.complete(self.unsaved[name], computed[name] + scheduled[name]):
                jobs.saves.append(self.unsaved.pop(name))
        self.forget()
        return jobs

    def request_finished(self, request: Any, block_ids: list[int]) -> tuple[bool, None]:
        return self._kv_transfer_config.is_kv_producer, None

    # Worker side

    def register_kv_caches(self, kv_caches: dict[str, torch.Tensor]) -> None:
        self.caches = kv_caches

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        for job in self._get_connector_metadata().loads:
            self.load(job)

    def wait_for_layer_load(self, layer_name: str) -> None:
        return None

    def save_kv_layer(
        self, layer_name: str, kv_layer: torch.Tensor, attn_metadata: Any, **kwargs: Any
    ) -> None:
        for job in self._get_connector_metadata().saves:
            self.file(job.key, layer_name).parent.mkdir(parents=True, exist_ok=True)
            torch.save(kv_layer[self.at(job)].clone(), self.file(job.key, layer_name))

    def wait_for_save(self) -> None:
        return None

    def get_finished(self, finished_req_ids: set[str]) -> tuple[set[str] | None, set[str] | None]:
        return (set(finished_req_ids) if self._kv_transfer_config.is_kv_producer else None), None

    def get_block_ids_with_load_errors(self) -> set[int]:
        failed, self.failed = self.failed, set()
        return failed

    # What the others change

    def load(self, job: Job) -> None:
        for layer in self.caches:
            try:
                self.put(layer, job, torch.load(self.file(job.key, layer)))
            except (OSError, EOFError, RuntimeError):
                self.failed |= {*job.blocks[job.start // self.block : job.tokens // self.block]}

    def usable(self, length: int) -> int:
        return (length - 1) // self.block * self.block

    def complete(self, job: Job, computed: int) -> bool:
        return computed >= job.tokens

    def stored(self, key: str) -> bool:
        return (self.folder / key).is_dir()

    def key(self, tokens: list[int]) -> str:
        return hashlib.sha256(repr(list(tokens)).encode()).hexdigest()

    def file(self, key: str, layer: str) -> Path:
        return self.folder / key / layer

    def forget(self) -> None:
        self.loads.clear()

    def put(self, layer: str, job: Job, kv: torch.Tensor) -> None:
        self.caches[layer][self.at(job, job.start)] = kv[job.start :]

    def at(self, job: Job, start: int = 0) -> Any:
        where = torch.arange(start, job.tokens)
        return torch.tensor(job.blocks)[where // self.block], slice(None), where % self.block
