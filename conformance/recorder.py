"""Keeps ``report.json`` up to date while a run goes on.

Lives in the one process that sees every result: pytest itself, or xdist's controller.
"""

from __future__ import annotations

import platform
import shlex
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import psutil

from conformance import __version__
from conformance.attachment import Attachment, without_secrets
from conformance.clock import RunClock
from conformance.contradictions import contradictions
from conformance.crashes import CRASHES
from conformance.deadline import ANSWER_LIMIT_S
from conformance.expectations_outcome import tally
from conformance.handoffs import meaning_of
from conformance.options import RunOptions
from conformance.profile import Profile
from conformance.registry import PlannedCell
from conformance.report import (
    Cell,
    ConnectorResult,
    Control,
    Engine,
    Gpu,
    Host,
    Report,
    ServerStart,
    Suite,
    Timing,
    new_run_id,
    save,
)
from conformance.report_parts import ExpectationsResult
from conformance.serving.engine import Installation


class Recorder:
    """The report of a run, and the file it is in."""

    def __init__(
        self,
        options: RunOptions,
        cells: list[PlannedCell],
        engine: Installation,
        gpus: list[Gpu],
        clock: RunClock,
        expectations: ExpectationsResult | None = None,
    ) -> None:
        self.folder = options.report
        _clear(self.folder)
        self._clock = clock
        self._began = time.monotonic()
        self._worker_timing: dict[str, Timing] = {}
        now = datetime.now(UTC)
        self.report = Report(
            run_id=new_run_id(now),
            suite=Suite(version=__version__, commit=_commit()),
            started=now,
            seed=options.seed,
            options=options.model_dump(mode="json"),
            command=without_secrets(sys.argv),
            host=elsewhere(options.attachment) if options.attachment else host(gpus),
            engine=Engine(
                distribution=engine.distribution,
                version=engine.version,
                device=engine.device,
                python=engine.python,
                launch_command=engine.launch_prefix("MODEL"),
            ),
            packages=engine.packages,
            expectations=expectations,
            connectors=_columns(cells, options),
            controls=[_control(cell, options) for cell in cells if cell.profile.control],
        )
        self.save()

    def save(self) -> None:
        """Write the file as things stand. Raises :class:`ReportError`."""
        self.report.duration_s = round(time.monotonic() - self._began, 1)
        self.report.timing = self._timing()
        self.report.contradictions = contradictions(self.report)
        tally(self.report)
        save(self.report, self.folder)

    def cell(self, connector: str, result: Cell) -> None:
        """Put a finished cell in the place that was planned for it."""
        control = next((c for c in self.report.controls if c.name == connector), None)
        column = self.report.connector(connector)
        if control:
            control.cell = result
        else:
            assert column is not None, f"{connector} was not planned"
            at = next(i for i, c in enumerate(column.cells) if c.check == result.check)
            column.cells[at] = result
        self.save()

    def server(self, start: ServerStart) -> None:
        """Note that a server was started, or that it was not."""
        self.report.servers.append(start)
        launched = self.report.engine
        if launched and start.command:
            launched.launch_command = start.command

    def worker_timing(self, worker: str, timing: Timing) -> None:
        """The split that an xdist worker measured; workers are added up."""
        self._worker_timing[worker] = timing

    def finish(self, state: str) -> None:
        """The last write of a run."""
        self.report = self.report.model_copy(update={"state": state})
        self.save()

    def _timing(self) -> Timing:
        parts = list(self._worker_timing.values()) or [self._clock.timing()]
        return Timing(
            wall_s=round(sum(p.wall_s for p in parts), 3),
            startup_s=round(sum(p.startup_s for p in parts), 3),
            request_s=round(sum(p.request_s for p in parts), 3),
            harness_s=round(sum(p.harness_s for p in parts), 3),
            server_starts=sum(p.server_starts for p in parts),
        )


def replay_line(cell: PlannedCell, options: RunOptions) -> str:
    """A command that tries this cell again, with nothing but an installed suite."""
    parts = ["kv-conformance", "run", "--connector", cell.profile.name, "--check", cell.id]
    for path in options.profiles:
        parts += ["--profile", str(path)]
    if options.attachment:
        parts += options.attachment.words()
    if options.model:
        parts += ["--model", options.model]
    if cell.check.model == "real":
        parts += ["--real-model", "all"]
    if options.server_python != sys.executable:
        parts += ["--server-python", options.server_python]
    if cell.profile.name in options.server_pythons:
        own = options.server_pythons[cell.profile.name]
        parts += ["--server-python", f"{cell.profile.name}={own}"]
    if options.answer_limit_s != ANSWER_LIMIT_S:
        parts += ["--answer-limit", f"{options.answer_limit_s:g}"]
    if options.attachment is None:  # a running pair has seen this run's prompts
        parts += ["--seed", str(options.seed)]
    return shlex.join(parts)


def host(gpus: list[Gpu]) -> Host:
    """This machine."""
    return Host(
        platform=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=platform.python_version(),
        cpu=_cpu_name(),
        cores=psutil.cpu_count() or 1,
        memory_bytes=psutil.virtual_memory().total,
        gpus=gpus,
    )


def elsewhere(attachment: Attachment) -> Host:
    """The machine of a pair that runs already: nothing is known of it but its URLs."""
    where = dict.fromkeys((attachment.prefill_url, attachment.decode_url))
    return Host(
        platform=f"not known: servers were running at {' and '.join(where)}",
        python="not known",
        cpu="not known",
        cores=0,
        memory_bytes=0,
    )


def planned(cell: PlannedCell, options: RunOptions) -> Cell:
    """The cell as it stands before it is tried."""
    return Cell(
        check=cell.id,
        feature=cell.check.feature,
        level=cell.level,
        requirement=cell.check.requirement,
        model=cell.model,
        deployment=cell.deployment,
        through=cell.through,
        replay=replay_line(cell, options),
    )


def _clear(folder: Path) -> None:
    """Remove what an earlier run left that would be taken for this one's."""
    for stale in (folder / CRASHES, *(folder / "logs").glob("*.log")):
        stale.unlink(missing_ok=True)


def _columns(cells: list[PlannedCell], options: RunOptions) -> list[ConnectorResult]:
    columns: dict[str, ConnectorResult] = {}
    for cell in cells:
        if cell.profile.control:
            continue
        column = columns.setdefault(cell.profile.name, _column(cell.profile))
        column.cells.append(planned(cell, options))
    return list(columns.values())


def _control(cell: PlannedCell, options: RunOptions) -> Control:
    profile = cell.profile
    return Control(
        name=profile.name,
        title=profile.title,
        summary=profile.summary,
        cell=planned(cell, options),
    )


def _column(profile: Profile) -> ConnectorResult:
    return ConnectorResult(
        name=profile.name,
        title=profile.title,
        connector_class=profile.connector,
        profile_path=str(profile.path),
        profile_digest=profile.digest,
        declared={
            "handoff": profile.handoff,
            "handoff_meaning": meaning_of(profile.handoff),
            "granularity": profile.granularity.value,
            "platforms": list(profile.platforms),
            "platforms_source": profile.platforms_source,
            "capabilities": profile.capabilities.model_dump(exclude_none=True),
            "features": {k: v.model_dump() for k, v in profile.features.items()},
        },
        links=list(profile.links),
    )


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown"


def _commit() -> str | None:
    """The suite's own commit, when it runs from a checkout."""
    root = Path(__file__).parent.parent
    if not (root / ".git").exists():
        return None
    done = subprocess.run(
        ["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or None
