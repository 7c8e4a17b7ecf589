from typing import Any

from contract_faults.right_pipe import RightPipe


class PipeChangesDtype(RightPipe):
    def recv_tensor(self) -> Any:
        tensor = super().recv_tensor()
        return tensor.to("float32") if tensor is not None and tensor.dtype == "bool" else tensor
