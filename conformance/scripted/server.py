"""Entry point of the scripted server: vLLM's command line, of which it needs a few options."""

from __future__ import annotations

import argparse
import json
import mmap
import os
import time
from typing import Any

from conformance.scripted import lifecycle, tenants, thinking, together, variants
from conformance.scripted.connectors import NoConnector, connector_for
from conformance.scripted.counters import Counters
from conformance.scripted.engine import Engine
from conformance.scripted.faults import Faults, count_start, faults_of
from conformance.scripted.log import die, info, lament, refuse_port
from conformance.scripted.refusals import refuse
from conformance.scripted.store import Store
from conformance.scripted.web import FakeServer

# Those with NIXL's counters.
TRANSFERS = ("NixlConnector", "StoreConnector", together.NAME)
_ROLES = {"kv_producer": "prefill", "kv_consumer": "decode"}


def main() -> None:
    """Serve until killed."""
    options = _arguments()
    config = json.loads(options.kv_transfer_config or "{}")
    role = _ROLES.get(config.get("kv_role", ""), "reference")
    faults = faults_of(role)
    info("api_utils.py:347", "version 0.32.0")
    _begin_badly(faults, role, options.port)
    refuse(config)
    variants.begin(
        options.served_model_name, config.get("kv_connector"), options.kv_cache_dtype, faults
    )
    lifecycle.begin(options.enable_sleep_mode, faults)
    thinking.start_with(options.reasoning_parser)
    if "spawn_children" in faults:
        _spawn_children()
    name = config.get("kv_connector")
    counters = Counters(options.served_model_name, transfers=name in TRANSFERS)
    engine = Engine(
        _connector(config, role, options, faults),
        tenants.adapters(options.lora_modules),
        tenants.of_weights(options.served_model_name),
    )
    server = FakeServer(options.port, options.served_model_name, engine, counters, faults)
    server.pool.small = options.num_gpu_blocks_override is not None
    server.lifecycle.asynchronous = not options.no_async_scheduling
    server.lifecycle.cache_dtype = options.kv_cache_dtype
    server.drafts.on = options.speculative_config is not None
    info("api_server.py:500", f"Starting vLLM server on http://127.0.0.1:{options.port}")
    server.serve_forever()


def _connector(
    config: dict[str, Any], role: str, options: argparse.Namespace, faults: Faults
) -> NoConnector:
    if "gives_up" in faults:
        lament("no connector for this device")
        return NoConnector()
    name = config.get("kv_connector")
    if name == "StoreConnector":
        return Store(writes=role == "prefill")
    if name == together.NAME:
        return together.together(config, options.port, faults)
    model = None if "any_model" in faults else options.served_model_name
    return connector_for(config, options.port, model)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--served-model-name", required=True)
    parser.add_argument("--kv-transfer-config")
    parser.add_argument("--reasoning-parser")
    parser.add_argument("--lora-modules", nargs="+", default=[])
    parser.add_argument("--num-gpu-blocks-override")
    parser.add_argument("--no-async-scheduling", action="store_true")
    parser.add_argument("--enable-sleep-mode", action="store_true")
    parser.add_argument("--kv-cache-dtype", default="auto")
    parser.add_argument("--speculative-config")
    return parser.parse_known_args()[0]


def _begin_badly(faults: Faults, role: str, port: int) -> None:
    if "die_at_start" in faults:
        die("boom")
    if "port_in_use" in faults and count_start(role) <= faults.number("port_in_use"):
        refuse_port(port)
    if "hang_at_start" in faults:
        info("parallel_state.py:1200", "waiting for the other side")
        time.sleep(3600)


def _spawn_children() -> None:
    """What a worker leaves behind when nobody cleans up after it."""
    import subprocess  # slow to import, and rarely wanted

    subprocess.Popen(["sleep", "1000"], start_new_session=True)
    file = os.open(f"/dev/shm/fakevllm-{os.getpid()}", os.O_CREAT | os.O_RDWR, 0o600)
    os.truncate(file, mmap.PAGESIZE)
    global _shared
    _shared = mmap.mmap(file, mmap.PAGESIZE)
    os.close(file)


_shared: mmap.mmap | None = None
