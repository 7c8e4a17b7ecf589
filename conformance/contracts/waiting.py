"""Calls that may block, made in threads of their own: did it return, or does it wait?

The threads are daemons, and so are those that an implementation starts in them: a call that
hangs fails its clause and never the whole run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import ClassVar, Generic, TypeVar

from conformance.contracts.clause import Contract

T = TypeVar("T")


class Call(Generic[T]):
    """One call on its way."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._returned = threading.Event()
        self._value: list[T] = []
        self._problem: BaseException | None = None
        threading.Thread(target=self._run, daemon=True).start()

    def returned(self, within_s: float) -> bool:
        """Whether it has returned or raised by then."""
        return self._returned.wait(within_s)

    def result(self, what: str, within_s: float) -> T:
        """Its value; an assertion names the call if it did not return or raised."""
        assert self.returned(within_s), f"{what} did not return within {within_s} s"
        if self._problem is not None:
            raise AssertionError(f"{what} raised {self._problem!r}") from self._problem
        return self._value[0]

    def must_wait(self, what: str, why: str, grace_s: float) -> None:
        """An assertion fails if the call returns or raises during the grace time."""
        if not self.returned(grace_s):
            return
        outcome = repr(self._problem) if self._problem else "returned"
        raise AssertionError(f"{what} did not wait, although {why}: {outcome}")

    def _run(self) -> None:
        try:
            self._value.append(self._function())
        except BaseException as problem:
            self._problem = problem
        finally:
            self._returned.set()


class WaitingContract(Contract):
    """A contract that tells calls that wait from calls that do not."""

    prompt_s: ClassVar[float] = 5.0
    """A call that does not wait returns within this many seconds, on the busiest machine."""
    grace_s: ClassVar[float] = 0.3
    """A call that has not returned after this many seconds is taken to wait."""

    def promptly(self, what: str, function: Callable[[], T]) -> T:
        """The value of a call that must not wait."""
        return self.value(Call(function), what)

    def value(self, call: Call[T], what: str) -> T:
        """The value of a call made before, which must not wait any longer."""
        return call.result(what, self.prompt_s)

    def waiting(self, function: Callable[[], T], what: str, why: str) -> Call[T]:
        """A call that must wait, still on its way."""
        call = Call(function)
        call.must_wait(what, why, self.grace_s)
        return call
