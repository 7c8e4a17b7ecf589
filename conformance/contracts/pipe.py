"""The contract of a KV pipe: ``KVPipeBase``, in vLLM up to 0.12 and still on its prefill page.

Needs no vLLM; torch only for the default tensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import pytest

from conformance.contracts.tensors import Tensors, TorchTensors
from conformance.contracts.waiting import Call, WaitingContract

SHAPES: tuple[tuple[int, ...], ...] = ((), (0,), (1,), (7,), (2, 3), (2, 1, 4))
MANY = 20


class PipeEnds(NamedTuple):
    """Where tensors go in and where they come out."""

    sender: Any
    receiver: Any


class PipeContract(WaitingContract):
    """Subclass it and say in :meth:`open_pipe` how the two ends are made."""

    tensors: ClassVar[Tensors] = TorchTensors()

    def open_pipe(self) -> PipeEnds:
        """A new pipe. Both ends live in this process."""
        raise NotImplementedError("open_pipe() must return the two ends of a new pipe")

    @pytest.fixture
    def pipe(self) -> Iterator[PipeEnds]:
        """A new pipe, closed afterwards without waiting for it."""
        ends = self.promptly("open_pipe()", self.open_pipe)
        yield ends
        Call(ends.sender.close)
        Call(ends.receiver.close)

    def test_order_is_kept(self, pipe: PipeEnds) -> None:
        """Tensors come out in the order in which they went in."""
        sent = [self.tensors.make([number], [1], "int64") for number in range(MANY)]
        got = self._through(pipe, sent, self.grace_s)
        at = [n for n, (a, b) in enumerate(zip(sent, got, strict=True)) if not self._same(a, b)]
        assert not at, f"of {MANY} tensors those at places {at} are not the ones sent there"

    def test_none_travels(self, pipe: PipeEnds) -> None:
        """None can be sent like a tensor, and comes out in its place."""
        tensor = self.tensors.make([1.0, 2.0], [2], "float32")
        got = self._through(pipe, [None, tensor, None, None, tensor], self.grace_s)
        assert [item is None for item in got] == [True, False, True, True, False], (
            "sent None, tensor, None, None, tensor; came out: "
            + ", ".join("None" if item is None else "tensor" for item in got)
        )

    def test_dtype_shape_and_values_are_kept(self, pipe: PipeEnds) -> None:
        """A tensor of any dtype and shape, an empty one included, comes out bit for bit."""
        wrong = []
        for dtype in self.tensors.dtypes:
            for shape in SHAPES:
                sent = self._filled(shape, dtype)
                (got,) = self._through(pipe, [sent])
                if not self._same(sent, got):
                    look = "None" if got is None else "{} {}".format(*self.tensors.look(got))
                    wrong.append(f"{dtype} {shape} came out as {look}")
        assert not wrong, "; ".join(wrong)

    def test_receiving_waits_for_a_tensor(self, pipe: PipeEnds) -> None:
        """recv_tensor() on an empty pipe waits until something is sent."""
        waiting = self.waiting(pipe.receiver.recv_tensor, "recv_tensor()", "the pipe is empty")
        tensor = self.tensors.make([3.0], [1], "float32")
        self.promptly("send_tensor()", lambda: pipe.sender.send_tensor(tensor))
        assert self._same(self.value(waiting, "recv_tensor()"), tensor), "another tensor came out"

    def test_close_returns(self, pipe: PipeEnds) -> None:
        """close() returns on both ends once everything sent was received, and when unused."""
        self._through(pipe, [self.tensors.make([4.0], [1], "float32")])
        unused = self.promptly("open_pipe()", self.open_pipe)
        for name, end in (("sender", pipe.sender), ("receiver", pipe.receiver)):
            self.promptly(f"close() of the {name}", end.close)
        for name, end in (("sender", unused.sender), ("receiver", unused.receiver)):
            self.promptly(f"close() of the unused {name}", end.close)

    def _through(self, pipe: PipeEnds, items: list[Any], head_start_s: float = 0.0) -> list[Any]:
        """Sends and receives. A pipe that holds nothing keeps the sender waiting meanwhile."""
        sending = Call(lambda: [pipe.sender.send_tensor(item) for item in items])
        sending.returned(head_start_s)
        got = [self.promptly("recv_tensor()", pipe.receiver.recv_tensor) for _ in items]
        self.value(sending, "send_tensor()")
        return got

    def _filled(self, shape: tuple[int, ...], dtype: str) -> Any:
        count = 1
        for length in shape:
            count *= length
        return self.tensors.make([float(n % 5) for n in range(count)], shape, dtype)

    def _same(self, one: Any, other: Any) -> bool:
        if one is None or other is None:
            return one is other
        return self.tensors.same(one, other)
