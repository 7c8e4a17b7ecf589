"""A pool of blocks too small for two requests: the later one is preempted while they overlap."""

from __future__ import annotations

import threading
import time

from conformance.scripted.faults import Faults

# So long a request takes, so that others come meanwhile.
OVERLAP_S = 0.1


class Pool:
    """Counts preemptions; ``small``: as by ``--num-gpu-blocks-override``."""

    def __init__(self) -> None:
        self.small = False
        self._inside = self._preempted = 0
        self._lock = threading.Lock()

    def enter(self, faults: Faults) -> bool:
        """A request comes; whether it is preempted."""
        with self._lock:
            preempted = self.small and self._inside > 0 and "never_preempts" not in faults
            self._inside += 1
            self._preempted += preempted
        time.sleep(OVERLAP_S * self.small)
        return preempted

    def leave(self) -> None:
        """A request has ended."""
        with self._lock:
            self._inside -= 1

    def text(self) -> str:
        """Its part of ``/metrics``."""
        name = "vllm:num_preemptions_total"
        return f"# TYPE {name} counter\n{name} {self._preempted}\n"
