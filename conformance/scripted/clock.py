"""The time of day of the suite's own process, jumping: whatever is measured must not use it."""

from __future__ import annotations

import datetime as library
import sys
import time
from itertools import count
from typing import Any

from pydantic import GetCoreSchemaHandler

HOUR_S = 3600
_jumps = count()
_now, _now_ns = time.time, time.time_ns


def let_jump() -> None:
    """From now on each reading is an hour ahead, or behind, of what it should be.

    So in every module of the suite that is imported already, ``time`` and ``datetime`` alike.
    Clocks that only run on, such as ``time.monotonic``, are left alone.
    """
    time.time = lambda: _now() + _off()
    time.time_ns = lambda: _now_ns() + _off() * 10**9
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("conformance", "matrix"):
            for word, kind in (("datetime", Jumping), ("date", JumpingDate)):
                if getattr(module, word, None) is getattr(library, word):
                    setattr(module, word, kind)


class Jumping(library.datetime):
    """A ``datetime`` whose ``now`` jumps."""

    @classmethod
    def now(cls, tz: library.tzinfo | None = None) -> Any:
        """An hour off."""
        return library.datetime.now(tz) + library.timedelta(seconds=_off())

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> Any:
        """Models that are made from now on take it for what it stands for."""
        return handler.generate_schema(library.datetime)


class JumpingDate(library.date):
    """A ``date`` whose ``today`` jumps, an hour before and after it would."""

    @classmethod
    def today(cls) -> Any:
        """The day that it is an hour from now, or was an hour ago."""
        return (library.datetime.now() + library.timedelta(seconds=_off())).date()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> Any:
        """As above."""
        return handler.generate_schema(library.date)


def _off() -> int:
    return HOUR_S if next(_jumps) % 2 else -HOUR_S
