"""The bytes are read as numbers of another type."""

from __future__ import annotations

from typing import Any

from conformance.mutants.fault import UNRELATED, Fault
from conformance.mutants.landed import Landed


class WrongDtype(Fault):
    """What arrives is taken for whole numbers, and turned into floating point again."""

    red = ("transfer/completion", "length/2B")
    green = UNRELATED

    def landed(self, kv: Landed) -> None:
        import torch

        def misread(rows: Any) -> Any:
            whole = torch.int16 if rows.element_size() == 2 else torch.int32
            return rows.view(whole).to(rows.dtype)

        kv.change(misread)
