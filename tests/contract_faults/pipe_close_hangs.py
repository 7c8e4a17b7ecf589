import threading

from contract_faults.right_pipe import RightPipe


class PipeCloseHangs(RightPipe):
    def close(self) -> None:
        threading.Event().wait()
