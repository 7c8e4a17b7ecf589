"""Another correct connector: asynchronous, late, and in need of steps of the prefill instance."""

from __future__ import annotations

from typing import Any

from contract_faults.right_connector import Job, RightConnector

# So many that a request that runs beside it grows into another block.
STEPS = 40


class LateConnector(RightConnector):
    """Prefill sends what decode has asked for in a step of its own, as one that pushes does."""

    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any) -> None:
        super().__init__(vllm_config, role, kv_cache_config)
        self.waited: dict[str, int] = {}
        self.asked: dict[str, Job] = {}

    def get_num_new_matched_tokens(
        self, request: Any, num_computed_tokens: int
    ) -> tuple[int | None, bool]:
        matched, _ = super().get_num_new_matched_tokens(request, num_computed_tokens)
        return matched, bool(matched)

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        for job in self._get_connector_metadata().loads:
            self.asked[job.request], self.waited[job.request] = job, 0
            (self.folder / f"asked-{job.request}").touch()

    def get_finished(self, finished_req_ids: set[str]) -> tuple[set[str] | None, set[str] | None]:
        if self._kv_transfer_config.is_kv_producer:
            for asked in self.folder.glob("asked-*"):
                asked.rename(asked.with_name(asked.name.replace("asked", "sent")))
            return set(finished_req_ids), None
        arrived = {name for name in [*self.asked] if self.arrived(name)}
        for name in arrived:
            self.load(self.asked.pop(name))
        return None, arrived

    def arrived(self, name: str) -> bool:
        self.waited[name] += 1
        files = [self.file(self.asked[name].key, layer) for layer in self.caches]
        if not all(file.stat().st_size for file in files):
            return True
        return self.waited[name] >= STEPS and (self.folder / f"sent-{name}").exists()
