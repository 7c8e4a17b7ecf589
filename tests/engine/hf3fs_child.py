"""Run under the engine's Python: where HF3FS's connector looks for its metadata server."""

import json
import logging
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

SHIMS = Path(__file__).parents[2] / "conformance" / "shims"


def main() -> None:
    logging.disable(logging.CRITICAL)
    sys.path.insert(0, str(SHIMS))
    import hf3fs_as_configured as shim

    config = SimpleNamespace(
        kv_transfer_config=SimpleNamespace(
            kv_connector_extra_config={"hf3fs_metadata_server_url": json.load(sys.stdin)}
        )
    )
    # The connector itself goes on to ask for CUDA: what matters is the client that it would make.
    shim.shipped.HF3FSKVConnector.__init__ = lambda *_: None
    found = {"as_shipped": shim.shipped.Hf3fsMetadataClient().base_url}
    found["with_mock"] = refusal(shim, config)
    shim.shipped.HF3FS_AVAILABLE = True
    shim.HF3FSKVConnectorAsConfigured(config)
    found["configured"] = shim.shipped.Hf3fsMetadataClient().base_url
    print(json.dumps(found))
    sys.stdout.flush()
    os._exit(0)


def refusal(shim: Any, config: Any) -> str:
    try:
        shim.HF3FSKVConnectorAsConfigured(config)
    except RuntimeError as problem:
        return str(problem)
    return ""


if __name__ == "__main__":
    main()
