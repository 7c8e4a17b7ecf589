"""Run under a server's Python: what vLLM itself says of KV transfer configs. JSON in, JSON out.

Reads ``{"configs": [{…, "kv_connector": …}], "metrics": ["vllm:…"]}`` from standard input. Prints
``configs``, one answer each, and ``unknown_metrics``: names that vLLM's sources nowhere mention.
An answer has ``refused`` (why ``KVTransferConfig`` does not accept it), ``connector`` (the class
that the factory found), ``not_importable`` (why it found none) and the answers of ``children``.
"""

import json
import logging
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# What a client library or the registry appends to the name in the source.
SUFFIXES = ("_total", "_sum", "_count")

Answer = dict[str, Any]


def main() -> None:
    logging.disable(logging.CRITICAL)  # vLLM logs to standard output
    asked = json.load(sys.stdin)
    print(
        json.dumps(
            {
                "configs": [answer(config) for config in asked["configs"]],
                "unknown_metrics": unknown(asked["metrics"]),
            }
        )
    )
    sys.stdout.flush()
    os._exit(0)  # threads of the libraries that connectors import would keep the process


def answer(config: dict[str, Any]) -> Answer:
    """For one config, and in ``children`` for those in a MultiConnector's extra config."""
    from vllm.config import KVTransferConfig

    extra = config.get("kv_connector_extra_config", {})
    found: Answer = {"refused": None, "connector": None, "not_importable": None}
    found["children"] = [answer(child) for child in extra.get("connectors", [])]
    try:
        accepted = KVTransferConfig(**config)
        found["tiers"] = tiers(config["kv_connector"], extra)
    except (ValueError, TypeError) as problem:
        return {**found, "refused": str(problem)}
    return {**found, **resolved(accepted)}


def resolved(config: Any) -> Answer:
    """The class, as far as imports allow; its name must be known in any case."""
    from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory
    from vllm.distributed.kv_transfer.kv_connector.v1 import KVConnectorBase_V1

    try:
        found = KVConnectorFactory.get_connector_class(config)
    except (ImportError, OSError) as problem:
        return {"not_importable": f"{type(problem).__name__}: {problem}"}
    except (ValueError, AttributeError) as problem:
        return {"refused": str(problem)}
    if not issubclass(found, KVConnectorBase_V1):
        return {"refused": f"{found.__name__} is no KVConnectorBase_V1"}
    return {"connector": found.__name__}


def tiers(connector: str, extra: dict[str, Any]) -> list[str]:
    """The classes of an OffloadingConnector's tiers. Raises ValueError for an unknown one."""
    if connector != "OffloadingConnector":
        return []
    from vllm.v1.kv_offload.factory import OffloadingSpecFactory
    from vllm.v1.kv_offload.tiering.factory import SecondaryTierFactory

    OffloadingSpecFactory.get_spec_cls(extra)
    configs = extra.get("secondary_tiers", [])
    return [SecondaryTierFactory.get_tier_class(tier).__name__ for tier in configs]


def unknown(metrics: list[str]) -> list[str]:
    """Those whose name, with or without a suffix, is in no source file of vLLM."""
    spec = find_spec("vllm")
    assert spec is not None
    assert spec.origin is not None
    wanted = {name: {name, *(name.removesuffix(end) for end in SUFFIXES)} for name in metrics}
    for file in Path(spec.origin).parent.rglob("*.py"):
        if not wanted:
            break
        text = file.read_text(errors="replace")
        quoted = {n for n, forms in wanted.items() if any(f'"{form}"' in text for form in forms)}
        wanted = {name: forms for name, forms in wanted.items() if name not in quoted}
    return sorted(wanted)


if __name__ == "__main__":
    main()
