import queue
from typing import Any

from contract_faults.right_pipe import RightPipe


class PipeReceiveDoesNotWait(RightPipe):
    """Gives up soon, which looks right as long as the sender is quick."""

    def recv_tensor(self) -> Any:
        try:
            return self.queue.get(timeout=0.01)
        except queue.Empty:
            return None
