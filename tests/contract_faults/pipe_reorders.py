import queue

from contract_faults.right_pipe import RightPipe


class PipeReorders(RightPipe):
    """Last in, first out."""

    def __init__(self) -> None:
        self.queue = queue.LifoQueue()
