import math

from contract_faults.right_buffer import RightBuffer


class BufferTakesCloseTokensForEqual(RightBuffer):
    """Compares token ids as if they were measurements."""

    def equal(self, one: float, other: float) -> bool:
        return math.isclose(one, other, rel_tol=1e-5)
