from typing import Any

from contract_faults.right_buffer import RightBuffer


class BufferInsertBlocks(RightBuffer):
    """insert() returns only once somebody has taken the entry."""

    def insert(self, *entry: Any) -> None:
        super().insert(*entry)
        with self.changed:
            self.changed.wait_for(lambda: list(entry) not in self.entries)
