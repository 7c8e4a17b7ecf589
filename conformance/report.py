"""``report.json``: one versioned file per run, written as results arrive.

The model is the contract that the matrix, CI and other programs read; its JSON Schema is
committed as ``reports/report.schema.json``. Anything that is not in here was not seen.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from conformance.errors import ReportError
from conformance.evidence import Evidence
from conformance.report_parts import (
    AssumptionResult,
    Contradiction,
    ExpectationsResult,
    Expected,
    RegistryGate,
)
from conformance.verdict import Verdict

SCHEMA_VERSION = 1
FILE_NAME = "report.json"
NOT_REACHED = "planned, but the run ended before it was reached"


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Suite(_Model):
    """Which build of this suite wrote the report."""

    name: str = "kv-conformance"
    version: str
    commit: str | None = None


class Gpu(_Model):
    """One accelerator; ``memory_bytes`` is its total memory."""

    index: int
    name: str
    memory_bytes: int


class Host(_Model):
    """The machine the servers ran on; ``memory_bytes`` is physical memory."""

    platform: str
    python: str
    cpu: str
    cores: int
    memory_bytes: int
    gpus: list[Gpu] = Field(default_factory=list)


class Engine(_Model):
    """The vLLM build under test: distribution, version and the command that launches it."""

    distribution: str
    version: str
    device: str
    python: str
    launch_command: list[str] = Field(default_factory=list)


class Timing(_Model):
    """Where the wall time went, in seconds.

    ``startup_s``: at least one server was starting or stopping; ``request_s``: at least one
    request was in flight; ``harness_s``: the rest, the suite's own overhead.
    """

    wall_s: float = 0.0
    startup_s: float = 0.0
    request_s: float = 0.0
    harness_s: float = 0.0
    server_starts: int = 0


class ServerStart(_Model):
    """One server that was started: what for, how, and how long it took, in seconds."""

    deployment: str
    role: str
    model: str
    command: list[str]
    block_size: int | None = None
    startup_s: float | None = None
    problem: str | None = None


class Cell(_Model):
    """Verdict of one check for one connector, and what it stands on.

    ``through``: the shim without which the connector does not run on this platform.
    ``expectation``: what is known of it beforehand, and what it was judged without that.
    """

    check: str
    feature: str
    level: Literal["core", "extended", "provisional"]
    requirement: str
    verdict: Verdict = Verdict.NOT_RUN
    message: str = NOT_REACHED
    model: str = ""
    deployment: str = ""
    evidence: Evidence = Field(default_factory=Evidence)
    expectation: Expected | None = None
    through: str | None = None
    duration_s: float = 0.0
    replay: str = ""
    log_excerpt: str | None = None


class ConnectorResult(_Model):
    """One column of the matrix: a connector, what it says of itself, and its cells."""

    name: str
    title: str
    connector_class: str
    profile_path: str
    profile_digest: str
    declared: dict[str, Any] = Field(default_factory=dict)
    introspected: dict[str, Any] = Field(default_factory=dict)
    links: list[str] = Field(default_factory=list)
    cells: list[Cell] = Field(default_factory=list)

    def cell(self, check: str) -> Cell | None:
        """The cell of a check id, if the run planned one."""
        return next((c for c in self.cells if c.check == check), None)


class Control(_Model):
    """A connector that cannot transfer, and whether the run found that out.

    ``cell``: the foundation check on it, judged as any other; it must not be a pass.
    """

    name: str
    title: str
    summary: str
    cell: Cell

    @property
    def caught(self) -> bool | None:
        """Whether the check went red on it; ``None`` where it could not be tried."""
        if self.cell.verdict is Verdict.NOT_RUN:
            return None
        return self.cell.verdict in (Verdict.FAIL, Verdict.DEGRADED)


class Report(_Model):
    """A whole run. ``state`` is ``running`` until the run ends by itself or by Ctrl-C."""

    schema_version: Literal[1] = 1
    run_id: str
    state: Literal["running", "finished", "interrupted"] = "running"
    suite: Suite
    started: datetime
    duration_s: float = 0.0
    seed: int
    options: dict[str, Any] = Field(default_factory=dict)
    command: list[str] = Field(default_factory=list)
    host: Host
    engine: Engine | None = None
    packages: dict[str, str] = Field(default_factory=dict)
    timing: Timing = Field(default_factory=Timing)
    servers: list[ServerStart] = Field(default_factory=list)
    problems: list[str] = Field(default_factory=list)
    registry: RegistryGate | None = None
    contradictions: list[Contradiction] = Field(default_factory=list)
    assumptions: list[AssumptionResult] = Field(default_factory=list)
    expectations: ExpectationsResult | None = None
    connectors: list[ConnectorResult] = Field(default_factory=list)
    controls: list[Control] = Field(default_factory=list)

    def connector(self, name: str) -> ConnectorResult | None:
        """The column of that name, if the run had it."""
        return next((c for c in self.connectors if c.name == name), None)

    def verdicts(self) -> list[Verdict]:
        """Every cell's verdict, in report order."""
        return [cell.verdict for column in self.connectors for cell in column.cells]


def save(report: Report, folder: Path) -> Path:
    """Replace ``folder/report.json`` in one step, so that a reader never sees half a file.

    Raises :class:`ReportError` naming the path; the previous file then still stands.
    """
    target = folder / FILE_NAME
    partial = folder / f".{FILE_NAME}.{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        partial.write_text(report.model_dump_json(indent=1), encoding="utf-8")
        os.replace(partial, target)
    except OSError as problem:
        raise ReportError(_cannot_write(target, problem)) from problem
    finally:
        _remove_quietly(partial)
    return target


def load(path: Path) -> Report:
    """Read a report file, or the one inside a run's folder. Raises :class:`ReportError`."""
    file = path / FILE_NAME if path.is_dir() else path
    try:
        raw = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as problem:
        raise ReportError(
            f"no report at {file}: give a run's folder or its {FILE_NAME} "
            "(kv-conformance run --report DIR writes one)"
        ) from problem
    except (OSError, ValueError) as problem:
        raise ReportError(f"{file} is not a readable report: {problem}") from problem
    return _validated(raw, file)


def _validated(raw: object, file: Path) -> Report:
    found = raw.get("schema_version") if isinstance(raw, dict) else None
    if found != SCHEMA_VERSION:
        raise ReportError(
            f"{file}: schema_version is {found!r}, this suite reads {SCHEMA_VERSION}; "
            "render it with the suite version that wrote it"
        )
    try:
        return Report.model_validate(raw)
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ReportError(f"{file}: field {where}: {first['msg']}") from problem


def new_run_id(now: datetime | None = None) -> str:
    """A run id that sorts by time, such as ``20260131T120000Z``."""
    return (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")


def _cannot_write(target: Path, problem: OSError) -> str:
    return (
        f"cannot write {target}: {problem.strerror or problem}. "
        "Free some space or give another folder with --report DIR; "
        "what was saved before is still in place"
    )


def _remove_quietly(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return
