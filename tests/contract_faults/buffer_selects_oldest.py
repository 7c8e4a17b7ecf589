from typing import Any

from contract_faults.right_buffer import RightBuffer


class BufferSelectsOldest(RightBuffer):
    """Waits for a match, then takes whatever came in first."""

    def take(self, at: int) -> list[Any]:
        return super().take(0)
