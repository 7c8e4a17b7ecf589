from typing import Any

from contract_faults.right_buffer import RightBuffer


class BufferIgnoresRoi(RightBuffer):
    def matches(self, entry: list[Any], input_tokens: Any, roi: Any) -> bool:
        return all(
            one == other for one, other in zip(entry[0].values, input_tokens.values, strict=False)
        )
