from typing import Any

from contract_faults.right_buffer import RightBuffer


class BufferDoesNotRemove(RightBuffer):
    def take(self, at: int) -> list[Any]:
        return self.entries[at]
