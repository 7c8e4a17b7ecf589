import threading
from typing import Any

from contract_faults.right_buffer import RightBuffer


class BufferRefusesNone(RightBuffer):
    """The thread that would answer has died of the missing condition; the caller waits."""

    def drop_select(self, input_tokens: Any, roi: Any) -> list[Any]:
        if input_tokens is None:
            threading.Event().wait()
        return super().drop_select(input_tokens, roi)
