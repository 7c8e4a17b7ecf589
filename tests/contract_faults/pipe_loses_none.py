from contract_faults.right_pipe import RightPipe


class PipeLosesNone(RightPipe):
    def send_tensor(self, tensor: object) -> None:
        if tensor is not None:
            super().send_tensor(tensor)
