"""NIXL's class, under two names, which a scripted server does not use."""

from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorBase_V1, SupportsHMA


class NixlScheduler:
    """The part that knows what prefill hands over."""

    def request_finished(self, request, block_ids):
        """Params where the client asked for them."""
        if not request.kv_transfer_params:
            return False, None
        return True, dict(do_remote_prefill=True, remote_block_ids=block_ids)  # noqa: C408


class NixlPullConnector(KVConnectorBase_V1, SupportsHMA):
    """Passes what it is asked on to its scheduler."""

    def __init__(self, vllm_config, role, kv_cache_config):
        super().__init__(vllm_config, role, kv_cache_config)
        self.scheduler = NixlScheduler()

    def start_load_kv(self, forward_context):
        """Nothing."""

    def get_num_new_matched_tokens(self, request, num_computed_tokens):
        """Nothing."""
        return 0, False

    def request_finished(self, request, block_ids):
        """What the scheduler says."""
        return self.scheduler.request_finished(request, block_ids)

    def request_finished_all_groups(self, request, block_ids):
        """What the scheduler says."""
        return self.scheduler.request_finished(request, block_ids)

    def get_block_ids_with_load_errors(self):
        """None."""
        return set()

    @classmethod
    def get_required_kvcache_layout(cls, vllm_config):
        """By the model."""
        return None if vllm_config.model_config.use_mla else "LBHNC"

    @classmethod
    def build_prom_metrics(cls, vllm_config, metric_types, labelnames, per_engine_labelvalues):
        """Its own."""
        return object()


NixlConnector = NixlPullConnector
