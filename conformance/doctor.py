"""``doctor``: what can run here, what cannot and why, in one table."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

import psutil
from rich.console import Console
from rich.table import Table

from conformance.data import cache
from conformance.errors import SuiteError
from conformance.models import cached_folder, recipes
from conformance.options import RunOptions
from conformance.profile_file import builtin_profiles
from conformance.runtime import Runtime
from conformance.serving.ports import PortRange
from conformance.verdict import ExitCode

# Three CPU servers were measured at 1.9 GiB per worker and 0.8 GiB for its two parents.
MEMORY_FOR_A_PAIR = 9 << 30
WITHOUT_ENGINE = (
    "without one, pairs that run already can still be tried: kv-conformance probe, or run, with "
    "--prefill-url and --decode-url"
)
DISK_FOR_A_RUN = 3 << 30


@dataclass(frozen=True)
class Finding:
    """One row: what was looked at, whether it is fine, and the fact or the fix."""

    what: str
    fine: bool
    detail: str


def examine(options: RunOptions) -> ExitCode:
    """Print the table; 3 when nothing could be run."""
    findings, can_run = findings_of(options)
    table = Table(title="kv-conformance doctor", title_justify="left")
    for name in ("what", "", "detail"):
        table.add_column(name, overflow="fold")
    for found in findings:
        table.add_row(found.what, "[green]ok[/]" if found.fine else "[red]no[/]", found.detail)
    Console(highlight=False).print(table)
    return ExitCode.CONFORMANT if can_run else ExitCode.HARNESS


def findings_of(options: RunOptions) -> tuple[list[Finding], bool]:
    """Everything a run depends on, and whether at least one connector could run."""
    machine = _machine()
    try:
        runtime = Runtime(options)
    except SuiteError as problem:
        return [Finding("engine", False, f"{problem}; {WITHOUT_ENGINE}"), *machine], False
    engine = runtime.engine
    launch = " ".join(engine.launch_prefix("MODEL"))
    rows = [
        Finding("engine", True, f"{engine.distribution} {engine.version} for {engine.device}"),
        Finding("launch command", True, launch),
    ]
    rows += [Finding(f"GPU {gpu.index}", True, gpu.name) for gpu in runtime.gpus]
    connectors = []
    for profile in builtin_profiles().values():
        obstacle = runtime.problem_with(profile)
        connectors.append(Finding(profile.title, obstacle is None, obstacle or "can run"))
    rows += [*connectors, *_models(runtime), *machine]
    return rows, any(found.fine for found in connectors)


def _models(runtime: Runtime) -> list[Finding]:
    rows = []
    for recipe in recipes().values():
        missing = runtime.engine.missing(recipe.needs)
        if cached_folder(recipe).is_dir():
            rows.append(Finding(f"model {recipe.name}", True, f"built: {cached_folder(recipe)}"))
        elif missing:
            fix = f"needs {', '.join(missing)} in {runtime.engine.python}"
            rows.append(Finding(f"model {recipe.name}", False, fix))
        else:
            rows.append(Finding(f"model {recipe.name}", True, "will be built on first use"))
    return rows


def _machine() -> list[Finding]:
    memory = psutil.virtual_memory().available
    place = cache()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    rows = [
        Finding(
            "memory",
            memory >= MEMORY_FOR_A_PAIR,
            f"{memory >> 30} GiB free; a CPU pair and "
            f"its reference need about {MEMORY_FOR_A_PAIR >> 30}",
        ),
        Finding(
            "disk",
            free >= DISK_FOR_A_RUN,
            f"{free >> 30} GiB free at {place}; needs about {DISK_FOR_A_RUN >> 30}",
        ),
    ]
    try:
        lease = PortRange.parse(RunOptions().port_range).lease()
        lease.release()
        rows.append(Finding("ports", True, f"{RunOptions().port_range} has free ones"))
    except SuiteError as problem:
        rows.append(Finding("ports", False, str(problem)))
    return rows
