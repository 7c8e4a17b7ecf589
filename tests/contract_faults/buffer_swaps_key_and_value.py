from typing import Any

from contract_faults.right_buffer import RightBuffer


class BufferSwapsKeyAndValue(RightBuffer):
    def take(self, at: int) -> list[Any]:
        tokens, roi, key, value, hidden = super().take(at)
        return [tokens, roi, value, key, hidden]
