"""The base class of connectors, with a few of its hooks."""

from abc import ABC, abstractmethod


class SupportsHMA(ABC):
    """Mixed into connectors that work with the hybrid KV cache manager."""

    @abstractmethod
    def request_finished_all_groups(self, request, block_ids):
        """Called when a request is finished in every group of the cache."""


class KVConnectorBase_V1(ABC):  # noqa: N801 (vLLM's name)
    """Two abstract methods, and hooks with a default."""

    def __init__(self, vllm_config, role, kv_cache_config):
        self.role = role

    @abstractmethod
    def start_load_kv(self, forward_context):
        """Load what the step needs."""

    @abstractmethod
    def get_num_new_matched_tokens(self, request, num_computed_tokens):
        """How many tokens can be loaded."""

    def request_finished(self, request, block_ids):
        """Whether blocks are kept, and params for the client."""
        return False, None

    def get_block_ids_with_load_errors(self):
        """Blocks that could not be loaded."""
        return set()

    def reset_cache(self):
        """Empty the store."""
        return

    @classmethod
    def get_required_kvcache_layout(cls, vllm_config):
        """The layout it needs."""
        return

    @classmethod
    def requires_piecewise_for_cudagraph(cls, extra_config):
        """Whether it needs piecewise CUDA graphs."""
        return False

    @classmethod
    def build_prom_metrics(cls, vllm_config, metric_types, labelnames, per_engine_labelvalues):
        """Its own metrics."""
        return

    @classmethod
    def build_kv_connector_stats(cls, data=None):
        """Its own statistics."""
        return
