"""Run under the engine's Python: vLLM's own parsing of what handoffs send. JSON in, JSON out."""

import json
import logging
import os
import sys
from typing import Any


def main() -> None:
    logging.disable(logging.CRITICAL)
    asked = json.load(sys.stdin)
    print(json.dumps([moriio(**one) for one in asked["moriio"]] + tiers(asked["tiers"])))
    sys.stdout.flush()
    os._exit(0)  # threads of the libraries that connectors import would keep the process


def moriio(request: str, params: dict[str, Any], write: bool) -> Any:
    """The peer that MoRIIO finds in a request, or the words of its error."""
    from vllm.distributed.kv_transfer.kv_connector.v1.moriio.moriio_common import (
        MoRIIOConnectorMetadata,
    )

    found = MoRIIOConnectorMetadata()
    try:
        found.add_new_req(f"cmpl-{request}-0-0123abcd", [[1]], params, write_mode=write)
    except (ValueError, KeyError) as problem:
        return f"{type(problem).__name__}: {problem}"
    (peer,) = (found.reqs_to_save if write else found.reqs_to_recv).values()
    return [peer.transfer_id, peer.remote_host, peer.remote_handshake_port, peer.remote_notify_port]


def tiers(asked: list[dict[str, Any]]) -> list[Any]:
    """What the p2p tier reads from each side's params: ``[source, destination]``."""
    from vllm.v1.kv_offload.tiering.p2p import manager

    found = []
    for params in asked:
        source, dest = manager._parse_source(params), manager._parse_dest(params)
        found.append(
            [
                [source.kv_request_id, source.peer_id] if source else None,
                dest.kv_request_id if dest else None,
            ]
        )
    return found


if __name__ == "__main__":
    main()
