"""HF3FSKVConnector with the metadata server that its config names, and with no mock in its place.

Loaded by vLLM itself (``kv_connector_module_path``). As shipped (vLLM 0.32.0,
``hf3fs_connector.py``) the connector reads ``hf3fs_metadata_server_url`` and then makes its
clients without it, so they always go to port 18000; and where ``hf3fs_fuse`` or the client built
on it cannot be imported, it moves KV through a mock on ordinary files and says nothing. Here the
URL is passed on, and a mock is refused at start: a cell won by a mock would prove nothing of 3FS.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1.hf3fs import hf3fs_connector as shipped
from vllm.distributed.kv_transfer.kv_connector.v1.hf3fs.hf3fs_metadata_server import (
    Hf3fsGlobalMetadataClient,
)

URL = "hf3fs_metadata_server_url"


class HF3FSKVConnectorAsConfigured(shipped.HF3FSKVConnector):  # type: ignore[misc]
    """HF3FSKVConnector, constructed so that it uses what it was configured with, or not at all."""

    def __init__(self, vllm_config: Any, *args: Any, **kwargs: Any) -> None:
        if not shipped.HF3FS_AVAILABLE:
            raise RuntimeError(
                "HF3FS would run with its mock client: hf3fs_fuse, or the client built on it "
                "(torch's CUDA extension tools), cannot be imported; install them"
            )
        url = vllm_config.kv_transfer_config.kv_connector_extra_config[URL]
        vars(shipped)["Hf3fsMetadataClient"] = partial(Hf3fsGlobalMetadataClient, url)
        super().__init__(vllm_config, *args, **kwargs)
