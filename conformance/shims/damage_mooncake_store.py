"""Damages what a Mooncake store holds, for the suite's causality step.

Run under the engine's Python as ``python -m damage_mooncake_store ADMIN_PORT STATE mark|damage``,
with the profile's MOONCAKE_CONFIG_PATH. The master's admin server lists the keys; each key that
is new since ``mark`` is taken out of the store and put back with its 8-byte words reversed.
"""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

WORD = 8
REMOVE_LIMIT_S = 20.0
POLL_S = 0.05


def main() -> None:
    """Mark or damage, as asked."""
    port, state, what = int(sys.argv[1]), Path(sys.argv[2]) / "keys.json", sys.argv[3]
    if what == "mark":
        state.write_text(json.dumps(sorted(keys(port))))
        return
    new = sorted(keys(port) - set(json.loads(state.read_text())))
    store = connected()
    for key in new:
        damage(store, key)
    store.close()
    print(json.dumps({"damaged": len(new)}))


def keys(port: int) -> set[str]:
    """Every key that the master knows."""
    url = f"http://127.0.0.1:{port}/get_all_keys"
    with urllib.request.urlopen(url, timeout=10) as answer:
        return set(answer.read().decode().split())


def connected() -> Any:
    """A client of the store that brings no memory of its own.

    What it puts back must lie with the servers: a segment of its own would go with it.
    """
    from mooncake.store import MooncakeDistributedStore

    config = json.loads(Path(os.environ["MOONCAKE_CONFIG_PATH"]).read_text())
    store = MooncakeDistributedStore()
    code = store.setup(
        "127.0.0.1",
        config["metadata_server"],
        0,
        64 << 20,
        config["protocol"],
        config["device_name"],
        config["master_server_address"],
    )
    if code:
        sys.exit(f"cannot join the store at {config['master_server_address']}: code {code}")
    return store


def damage(store: Any, key: str) -> None:
    """Put the value of a key back with its words in reverse order."""
    value = bytes(store.get(key))
    words = [value[at : at + WORD] for at in range(0, len(value), WORD)]
    deadline = time.monotonic() + REMOVE_LIMIT_S
    while store.remove(key):  # refused while a reader's lease lasts
        if time.monotonic() > deadline:
            sys.exit(f"key {key} cannot be removed: its lease does not end")
        time.sleep(POLL_S)
    if store.put(key, b"".join(reversed(words))):
        sys.exit(f"key {key} cannot be put back")


if __name__ == "__main__":
    main()
