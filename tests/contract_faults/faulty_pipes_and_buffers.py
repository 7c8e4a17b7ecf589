"""One contract class for each right and each wrong pipe and buffer, named after it."""

from __future__ import annotations

import importlib
from typing import Any

from conformance.contracts.lookup_buffer import BufferEnds, LookupBufferContract
from conformance.contracts.pipe import PipeContract, PipeEnds
from contract_faults.plain_tensors import PlainTensors

PIPES = (
    "RightPipe",
    "PipeReorders",
    "PipeLosesNone",
    "PipeChangesDtype",
    "PipeReceiveDoesNotWait",
    "PipeCloseHangs",
)
BUFFERS = (
    "RightBuffer",
    "BufferInsertBlocks",
    "BufferDoesNotRemove",
    "BufferSelectsOldest",
    "BufferSelectionDoesNotWait",
    "BufferIgnoresRoi",
    "BufferTakesCloseTokensForEqual",
    "BufferRefusesNone",
    "BufferSwapsKeyAndValue",
    "BufferUnbounded",
    "BufferCloseHangs",
)


def named(name: str) -> Any:
    """The class of that name, from the module named after it."""
    module = "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
    return getattr(importlib.import_module(f"contract_faults.{module}"), name)


QUICK = {"tensors": PlainTensors(), "prompt_s": 0.6, "grace_s": 0.1}


def of_pipe(name: str) -> type[PipeContract]:
    def open_pipe(self: PipeContract) -> PipeEnds:
        pipe = named(name)()
        return PipeEnds(pipe, pipe)

    return type(f"Test{name}", (PipeContract,), {**QUICK, "open_pipe": open_pipe})


def of_buffer(name: str) -> type[LookupBufferContract]:
    def open_buffer(self: LookupBufferContract, capacity_bytes: int) -> BufferEnds:
        buffer = named(name)(capacity_bytes)
        return BufferEnds(buffer, buffer)

    # Every clause of this one waits in vain, so it need not wait long.
    prompt = {"prompt_s": 0.2} if name == "BufferInsertBlocks" else {}
    attributes = {**QUICK, **prompt, "open_buffer": open_buffer}
    return type(f"Test{name}", (LookupBufferContract,), attributes)


for pipe in PIPES:
    globals()[f"Test{pipe}"] = of_pipe(pipe)
for buffer in BUFFERS:
    globals()[f"Test{buffer}"] = of_buffer(buffer)
del pipe, buffer
