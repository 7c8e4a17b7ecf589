"""The example connector's class, which a scripted server does not use."""

from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorBase_V1


class ExampleConnector(KVConnectorBase_V1):
    """Replaces no hook with a default."""

    def start_load_kv(self, forward_context):
        """Nothing."""

    def get_num_new_matched_tokens(self, request, num_computed_tokens):
        """Nothing."""
        return 0, False
