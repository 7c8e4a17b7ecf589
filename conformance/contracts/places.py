"""``${dir:name}`` and ``${port:name}`` in a contract's configuration, as in the profiles.

Every test gets fresh folders and ports, shared by the prefill and the decode side of the pair.
"""

from __future__ import annotations

import os
import random
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Below what Linux hands out to outgoing connections (32768 and up): one of those may take a port
# between this look at it and the connector's own bind, and NixlConnector then waits for ever
# (vLLM 0.32.0, vllm#23756). Nor is it where a run leases its servers' ports.
PORTS = range(10000, 20000)
PLACEHOLDER = re.compile(r"\$\{(port|dir):([a-z][a-z0-9_]*)\}")


class Places:
    """The temporary folders and free ports of one test, by name."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._ports: dict[str, int] = {}

    def folder(self, name: str) -> Path:
        """The folder of that name, made on first use."""
        folder = self.root / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def port(self, name: str) -> int:
        """A TCP port that was free a moment ago."""
        if name not in self._ports:
            others = self._ports.values()
            tried = (port for port in random.sample(PORTS, len(PORTS)) if port not in others)
            self._ports[name] = next(port for port in tried if _free(port))
        return self._ports[name]

    def fill(self, value: Any) -> Any:
        """A copy with each placeholder replaced; a lone port becomes an integer."""
        if isinstance(value, Mapping):
            return {key: self.fill(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.fill(item) for item in value]
        if not isinstance(value, str):
            return value
        whole = PLACEHOLDER.fullmatch(value)
        if whole and whole[1] == "port":
            return self.port(whole[2])
        return PLACEHOLDER.sub(lambda found: str(self._place(found[1], found[2])), value)

    def _place(self, kind: str, name: str) -> Path | int:
        return self.port(name) if kind == "port" else self.folder(name)


def _free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Sets environment variables for a while: P and D of a contract share one process."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
