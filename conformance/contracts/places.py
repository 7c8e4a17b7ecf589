"""``${dir:name}`` and ``${port:name}`` in a contract's configuration, as in the profiles.

Every test gets fresh folders and ports, shared by the prefill and the decode side of the pair.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self._ports[name] = probe.getsockname()[1]
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
