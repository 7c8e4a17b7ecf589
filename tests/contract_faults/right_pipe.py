"""A correct pipe within one process."""

from __future__ import annotations

import queue
from typing import Any


class RightPipe:
    """Both ends of the pipe in one object."""

    def __init__(self) -> None:
        self.queue: queue.Queue[Any] = queue.Queue()

    def send_tensor(self, tensor: Any) -> None:
        self.queue.put(tensor)

    def recv_tensor(self) -> Any:
        return self.queue.get()

    def close(self) -> None:
        return None
