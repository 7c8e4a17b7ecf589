"""Connector classes of an author's own, as given by ``kv_connector_module_path``.

Imported by the scripted engine only; the suite's process has no vLLM.
"""

from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorBase_V1


class Whole(KVConnectorBase_V1):
    """Complete, and hands over params of its own."""

    def start_load_kv(self, forward_context):
        """Nothing."""

    def get_num_new_matched_tokens(self, request, num_computed_tokens):
        """Nothing."""
        return 0, False

    def request_finished(self, request, block_ids):
        """Where decode finds the blocks."""
        return True, {"remote_place": "shelf", "remote_blocks": block_ids}

    def reset_cache(self):
        """Emptied."""
        return True


class Silent(Whole):
    """Replaces the hook and hands over nothing."""

    def request_finished(self, request, block_ids):
        """The blocks are kept, and no params."""
        return bool(block_ids), None


class Veiled(Whole):
    """Passes the call on to something its source does not show."""

    def request_finished(self, request, block_ids):
        """Whatever the other says."""
        return self.role.request_finished(request, block_ids)


class TwoArguments(Whole):
    """The constructor of vLLM's older interface."""

    def __init__(self, vllm_config, role):
        super().__init__(vllm_config, role, None)


class Unfinished(KVConnectorBase_V1):
    """Left half of its methods unwritten."""

    def start_load_kv(self, forward_context):
        """Nothing."""


class Foreign:
    """No connector at all."""


class Relayed(Whole):
    """Asks its ancestor."""

    def request_finished(self, request, block_ids):
        """What the ancestor says."""
        return super().request_finished(request, block_ids)
