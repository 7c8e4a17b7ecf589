import threading

from contract_faults.right_buffer import RightBuffer


class BufferCloseHangs(RightBuffer):
    def close(self) -> None:
        threading.Event().wait()
