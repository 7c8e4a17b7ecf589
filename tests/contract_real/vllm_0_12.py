"""``PyNcclPipe`` and ``SimpleBuffer`` of vLLM 0.12, the last release that has them, on the CPU."""

from __future__ import annotations

import socket

from vllm.config.kv_transfer import KVTransferConfig
from vllm.distributed.kv_transfer.kv_lookup_buffer.simple_buffer import SimpleBuffer
from vllm.distributed.kv_transfer.kv_pipe.pynccl_pipe import PyNcclPipe

from conformance.contracts.lookup_buffer import BufferEnds, LookupBufferContract
from conformance.contracts.pipe import PipeContract, PipeEnds
from conformance.contracts.waiting import Call

PAIRING_S = 20.0
# A receive that nobody answers gives up after this long; the process cannot end before.
STORE_TIMEOUT_S = 15
# A pipe that is collected closes its store's listening socket, which can abort the process while
# a receive is still on its way ("Unexpected poll revent"); so none is collected before the end.
KEPT: list[PyNcclPipe] = []


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def pipe_pair() -> list[PyNcclPipe]:
    """Two connected ends; the constructor of each waits for the other."""
    port = free_port()

    def end(rank: int) -> PyNcclPipe:
        config = KVTransferConfig(
            kv_connector="PyNcclConnector",
            kv_role="kv_both",
            kv_rank=rank,
            kv_parallel_size=2,
            kv_ip="127.0.0.1",
            kv_port=port,
            kv_connector_extra_config={"store_timeout": STORE_TIMEOUT_S},
        )
        return PyNcclPipe(local_rank=0, config=config, device="cpu")

    calls = [Call(lambda rank=rank: end(rank)) for rank in (0, 1)]
    pipes = [call.result("PyNcclPipe()", PAIRING_S) for call in calls]
    KEPT.extend(pipes)
    return pipes


class TestPyNcclPipe(PipeContract):
    prompt_s = 10.0

    def open_pipe(self) -> PipeEnds:
        return PipeEnds(*pipe_pair())


class TestSimpleBuffer(LookupBufferContract):
    prompt_s = 10.0

    def open_buffer(self, capacity_bytes: int) -> BufferEnds:
        signal, data = pipe_pair(), pipe_pair()
        prefill, decode = (
            SimpleBuffer(s, d, capacity_bytes) for s, d in zip(signal, data, strict=True)
        )
        return BufferEnds(prefill, decode)
