from typing import Any

from contract_faults.right_buffer import RightBuffer


class BufferSelectionDoesNotWait(RightBuffer):
    def drop_select(self, input_tokens: Any, roi: Any) -> list[Any]:
        with self.changed:
            at = self.found(input_tokens, roi)
        return [None] * 5 if at is None else super().drop_select(input_tokens, roi)
