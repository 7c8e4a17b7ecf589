"""Why a server ended, in the engine's own words.

vLLM dies loudly: the worker's exception is wrapped by the engine core's, which is wrapped by
the API server's. The one worth reading is the first that is not a wrapper.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

EXCERPT_LINES = 40
_TAIL_BYTES = 2_000_000

# "(EngineCore pid=71) ERROR 11-30 04:24:11 [core.py:100] " before every line of a traceback.
_PREFIX = re.compile(
    r"^(?:\([^)]*pid=\d+\)\s*)?(?:(?:ERROR|INFO|WARNING|CRITICAL) [\d-]+ [\d:]+ \[[^\]]*\]\s?)?"
)
_EXCEPTION = re.compile(
    r"^(?:\w+\.)*\w*(?:Error|Exception|Exit|Interrupt|Refused|Timeout|Fault)(?::|$)"
)
_FATAL = re.compile(r"(Segmentation fault|Fatal Python error|terminate called|core dumped|Killed$)")
_CHAINED = (
    "The above exception was the direct cause of the following exception",
    "During handling of the above exception, another exception occurred",
)
_INSTALL_PATH = re.compile(r"[^\s\"']*/(?:site-packages|lib/python3\.\d+)/")
_WRAPPERS = (
    "Engine core initialization failed",
    "EngineDeadError",
    "EngineCore encountered",
    "WorkerProc initialization failed",
    "See root cause above",
    "KeyboardInterrupt",
    "SystemExit",
    "CancelledError",
    "Executor failed",
)
_INVALID = re.compile(r"validation errors? for \w+$")
# "  Value error, Connector X uses deprecated … [type=value_error, input_value=…]", one or two
# lines below: a field's name may come first.
_REASON = re.compile(r"\s+(?:Value error, |Assertion failed, )?(.*?) \[type=")
_REASON_LINES = 2
# Answered as an HTTP error, and logged with its traceback; the server goes on.
_ANSWERED = re.compile(r"^(\w+) caught\. Request id")
_FORETOLD = re.compile(r"will fail at startup")
_ENVIRONMENT = (
    "address already in use",
    "eaddrinuse",
    "no space left on device",
    "cannot allocate memory",
    "out of memory",
    "outofmemory",
    "free memory on device",
    "too many open files",
    "killed",
)


@dataclass(frozen=True)
class RootCause:
    """The line to read first, and the lines around it.

    ``environment``: the machine's fault (port, disk, memory) rather than the connector's.
    """

    line: str
    excerpt: str
    environment: bool = False


def find_root_cause(log: Path) -> RootCause:
    """The first exception of a server log that is not a wrapper around another."""
    lines = [_PREFIX.sub("", raw) for raw in without_install_paths(tail(log)).splitlines()]
    at = _end_of_chain(lines, _first_exception(lines))
    if at is None:
        kept = [line for line in lines if line.strip()][-EXCERPT_LINES:]
        return RootCause(kept[-1] if kept else "the log is empty", "\n".join(kept))
    excerpt = "\n".join(lines[max(0, at - EXCERPT_LINES + 5) : at + 5])
    line = _with_what_pydantic_says(lines, at)
    return RootCause(line, excerpt, any(word in line.lower() for word in _ENVIRONMENT))


def foretold(log: Path) -> str | None:
    """A warning of the engine that it will fail to start, and why; ``None`` if it gave none.

    vLLM 0.32.0 turns the hybrid KV cache manager off for a connector that does not support it,
    says what that means, and later dies of "Failed to promote local KV cache specs to one unified
    type." (``config/vllm.py``).
    """
    lines = (_PREFIX.sub("", raw).strip() for raw in tail(log).splitlines())
    return next((line for line in lines if _FORETOLD.search(line)), None)


def survived(start: str) -> str:
    """An exception in what a server logged until it was ready all the same; empty without one.

    A connector may swallow it and go on without itself: LMCache calls that "degraded mode", and
    the server is healthy (lmcache 0.5.6, ``v1/manager.py``).
    """
    lines = [_PREFIX.sub("", raw) for raw in without_install_paths(start).splitlines()]
    at = _first_exception(lines)
    return "" if at is None else lines[at].strip()


def without_install_paths(text: str) -> str:
    """The text with paths of installed files cut to what is the same on every machine."""
    return _INSTALL_PATH.sub("", text)


def tail(log: Path, limit: int = _TAIL_BYTES) -> str:
    """The end of a log file, at most ``limit`` bytes; empty when there is none."""
    try:
        with log.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - limit))
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def _with_what_pydantic_says(lines: list[str], at: int) -> str:
    """The exception's line; of a configuration that is refused, with the reason below it.

    "1 validation error for VllmConfig" tells nothing; what vLLM raised is the second line after.
    """
    line = lines[at].strip()
    if not _INVALID.search(line):
        return line
    reasons = (_REASON.match(below) for below in lines[at + 1 : at + 1 + _REASON_LINES])
    reason = next(filter(None, reasons), None)
    return f"{line}: {reason[1]}" if reason else line


def _end_of_chain(lines: list[str], at: int | None) -> int | None:
    """The last exception of a chain, each raised because of the one before: meant for people."""
    while at is not None:
        rest = list(enumerate(lines[at + 1 : at + 4], at + 1))
        link = next((number for number, line in rest if line.strip().startswith(_CHAINED)), None)
        after = None if link is None else _first_exception(lines[link:])
        if link is None or after is None:
            return at
        at = link + after
    return None


def _first_exception(lines: list[str]) -> int | None:
    wrapped: int | None = None
    answered: set[str] = set()
    for number, line in enumerate(lines):
        text = line.strip()
        if found := _ANSWERED.match(text):
            answered.add(found[1])
        if not (_EXCEPTION.match(text) or _FATAL.search(text)) or _class(text) in answered:
            continue
        if not any(word in text for word in _WRAPPERS):
            return number
        wrapped = number if wrapped is None else wrapped
    return wrapped


def _class(line: str) -> str:
    """The name of an exception's class, without its module."""
    return line.partition(":")[0].rpartition(".")[2]
