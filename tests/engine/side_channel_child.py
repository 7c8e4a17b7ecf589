"""Starts a NIXL instance whose side channel's port is taken; run by an engine's Python.

Out: what the listener's thread died of, and the function in which the start waits since.
"""

import json
import os
import socket
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

from conformance.contracts.instance import Instance, Setup

NIXL = {"kv_connector": "NixlConnector", "kv_role": "kv_producer"}
# Nothing else could wake the start any more; this is for one that gives up by itself.
GRACE_S = 5


def main() -> None:
    """Answer on the last line of standard output."""
    died: list[str] = []
    gone = threading.Event()

    def note(told: threading.ExceptHookArgs) -> None:
        died.append(str(told.exc_value))
        gone.set()

    threading.excepthook = note
    with TemporaryDirectory() as folder, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        env = {
            "VLLM_NIXL_SIDE_CHANNEL_HOST": "127.0.0.1",
            "VLLM_NIXL_SIDE_CHANNEL_PORT": str(taken.getsockname()[1]),
        }
        start = threading.Thread(target=Instance, args=(Setup(NIXL, env), Path(folder)))
        start.start()
        while start.is_alive() and not gone.wait(0.1):
            pass
        start.join(GRACE_S)
        print(json.dumps({"died": died, "waits_in": _functions(start)}), flush=True)
    # The start that still waits is no daemon.
    os._exit(0)


def _functions(thread: threading.Thread) -> list[str]:
    frame = sys._current_frames().get(thread.ident or 0)
    names = []
    while frame is not None:
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    return names


if __name__ == "__main__":
    main()
