"""Connector classes of an author's own, as given by ``kv_connector_module_path``.

Imported by the scripted engine only; the suite's process has no vLLM.
"""

from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorBase_V1


class Whole(KVConnectorBase_V1):  # type: ignore[misc]
    """Complete, and hands over params of its own."""

    def start_load_kv(self, forward_context: Any) -> None:
        """Nothing."""

    def get_num_new_matched_tokens(
        self, request: Any, num_computed_tokens: int
    ) -> tuple[int, bool]:
        """Nothing."""
        return 0, False

    def request_finished(self, request: Any, block_ids: Any) -> Any:
        """Where decode finds the blocks."""
        return True, {"remote_place": "shelf", "remote_blocks": block_ids}

    def reset_cache(self) -> bool:
        """Emptied."""
        return True


class Silent(Whole):
    """Replaces the hook and hands over nothing."""

    def request_finished(self, request: Any, block_ids: Any) -> Any:
        """The blocks are kept, and no params."""
        return bool(block_ids), None


class Veiled(Whole):
    """Passes the call on to something its source does not show."""

    def request_finished(self, request: Any, block_ids: Any) -> Any:
        """Whatever the other says."""
        return self.role.request_finished(request, block_ids)


class TwoArguments(Whole):
    """The constructor of vLLM's older interface."""

    def __init__(self, vllm_config: Any, role: Any) -> None:
        super().__init__(vllm_config, role, None)


class Unfinished(KVConnectorBase_V1):  # type: ignore[misc]
    """Left half of its methods unwritten."""

    def start_load_kv(self, forward_context: Any) -> None:
        """Nothing."""


class Foreign:
    """No connector at all."""


class Relayed(Whole):
    """Asks its ancestor."""

    def request_finished(self, request: Any, block_ids: Any) -> Any:
        """What the ancestor says."""
        return super().request_finished(request, block_ids)
