"""A log that reads like vLLM's, and the ways to die in it."""

from __future__ import annotations

import os
from contextlib import suppress

_TIME = "11-30 04:24:11"


def say(line: str) -> None:
    """A line of the log; a full disk stops no server."""
    with suppress(OSError):
        os.write(1, f"{line}\n".encode())


def info(where: str, line: str) -> None:
    """A line as vLLM's logger writes it."""
    say(f"(APIServer pid={os.getpid()}) INFO {_TIME} [{where}] {line}")


def warn(where: str, line: str) -> None:
    """A warning of the engine core, as vLLM's logger writes it."""
    say(f"(EngineCore pid={os.getpid() + 1}) WARNING {_TIME} [{where}] {line}")


def die(message: str, kind: str = "RuntimeError") -> None:
    """The engine core's exception, what the API server makes of it, and the end."""
    core = f"(EngineCore pid={os.getpid() + 1}) ERROR {_TIME} [core.py:1200]"
    front = f"(APIServer pid={os.getpid()}) ERROR {_TIME} [async_llm.py:700]"
    for line in (
        "EngineCore encountered a fatal error.",
        "Traceback (most recent call last):",
        '  File "/opt/vllm/v1/engine/core.py", line 1190, in run_engine_core',
        "    engine_core.run_busy_loop()",
        '  File "/opt/vllm/v1/worker/cpu_worker.py", line 412, in execute_model',
        f'    raise {kind}("{message}")',
        f"{kind}: {message}",
    ):
        say(f"{core} {line}")
    for line in (
        "AsyncLLM output_handler failed.",
        "Traceback (most recent call last):",
        "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack "
        "trace (above) for the root cause.",
    ):
        say(f"{front} {line}")
    os._exit(1)


def lament(message: str) -> None:
    """What a connector says that fails to start and is done without, as LMCache's is."""
    for line in (
        "Failed to initialize components: Traceback (most recent call last):",
        '  File "/opt/connector/manager.py", line 96, in start',
        f'    raise RuntimeError("{message}")',
        f"RuntimeError: {message}",
        ". System will operate in degraded mode (recompute).",
    ):
        say(line)


def refuse_port(port: int) -> None:
    """What a server says whose port was taken while it started."""
    for line in (
        "Traceback (most recent call last):",
        '  File "/opt/vllm/entrypoints/openai/api_server.py", line 390, in create_server_socket',
        "    sock.bind(addr)",
        f"OSError: [Errno 98] error while attempting to bind on address ('127.0.0.1', {port}): "
        "address already in use",
    ):
        say(f"(APIServer pid={os.getpid()}) {line}")
    os._exit(1)
