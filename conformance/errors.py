"""Errors that a person reads: each says what is wrong, where, and what to do about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from conformance.verdict import ExitCode


class SuiteError(Exception):
    """Base of everything the command line turns into one clear line and an exit code."""

    exit_code: ExitCode = ExitCode.HARNESS


class UsageError(SuiteError):
    """Bad arguments or configuration: nothing was started."""

    exit_code = ExitCode.USAGE


class ReportError(SuiteError):
    """A report could not be read or written."""


class EnvironmentProblem(SuiteError):
    """A package, device, port or disk that a run needs is missing."""


class ModelError(SuiteError):
    """A fixture model could not be built or does not match its checksum."""


class ServerStartError(SuiteError):
    """A server did not become ready. ``root_cause`` is the engine's own words.

    ``blames_connector``: a server with the connector died by itself, and neither the machine
    (port, disk, memory) nor the reference's own start explains it. ``environment``: the machine
    does. ``log``: where more of its words are.
    """

    def __init__(
        self,
        message: str,
        root_cause: str | None = None,
        excerpt: str = "",
        *,
        blames_connector: bool = False,
        environment: bool = False,
        log: Path | None = None,
    ) -> None:
        super().__init__(message)
        self.root_cause = root_cause
        self.excerpt = excerpt
        self.blames_connector = blames_connector
        self.environment = environment
        self.log = log


class ForeignTraffic(SuiteError):
    """Counters moved by more than our own requests: no delta can be believed."""


class CountersWentBack(SuiteError):
    """A server counts less than before: no delta can be believed."""


class Unsettled(SuiteError):
    """A server never counted a request that was answered: no delta can be believed."""


class ReferenceFailed(SuiteError):
    """The reference server did not answer: the harness's trouble, not the connector's."""


class CheckFailed(AssertionError):
    """A requirement is broken; the message has observed, expected and where.

    ``excerpt``: the log lines behind it, where it has its own.
    """

    def __init__(self, message: str, excerpt: str = "") -> None:
        super().__init__(message)
        self.excerpt = excerpt


class Rejected(CheckFailed):
    """The server answered with an HTTP error; ``status`` and ``body`` are what it said.

    ``where``: which server, such as ``the decode server``.
    """

    def __init__(self, status: int, body: Any, where: str) -> None:
        super().__init__(f"HTTP {status} from {where}: {_short(body)}")
        self.status = status
        self.body = body
        self.where = where


class ServerDied(CheckFailed):
    """A server ended while a check was talking to it, with the root cause from its log."""


class HandoffBroken(CheckFailed):
    """The prefill answer lacks what the profile's handoff promises."""


class NotHere(Exception):
    """A check cannot be tried here; the message says what is missing."""


class Refused(Exception):
    """The engine or the profile says, in words we quote, that this is not supported."""


def _short(body: Any, limit: int = 400) -> str:
    text = body if isinstance(body, str) else json.dumps(body)
    return text if len(text) <= limit else text[:limit] + " …"
