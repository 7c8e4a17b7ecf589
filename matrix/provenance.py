"""Where results come from, in words: dates, times, builds and machines."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from conformance.report import Gpu, Host, Suite
from matrix import trust_words
from matrix.model import Matrix
from matrix.parts import EngineBuild, Run

RUN_COLUMNS = ("Run", "Started", "State", "Engine", "Wall", "Startup", "Requests", "Harness")
TIMING = (
    "Startup: a server was starting or stopping. Requests: at least one was in flight. Harness: "
    "the suite's own overhead, with its share of the wall time."
)


def moment(when: datetime) -> str:
    """Such as ``2026-01-31 12:00 UTC``."""
    return when.strftime("%Y-%m-%d %H:%M UTC")


def seconds(value: float) -> str:
    """Such as ``2.4 s``; whole seconds once tenths no longer matter."""
    return f"{value:,.0f} s" if value >= 100 else f"{value:.1f} s"


def run_row(run: Run) -> tuple[str, ...]:
    """A run under :data:`RUN_COLUMNS`: what it was, and where its time went."""
    timing = run.timing
    share = f" ({100 * timing.harness_s / timing.wall_s:.0f} %)" if timing.wall_s > 0 else ""
    return (
        run.run_id,
        moment(run.started),
        run.state,
        engine(run.engine),
        *(seconds(spent) for spent in (timing.wall_s, timing.startup_s, timing.request_s)),
        seconds(timing.harness_s) + share,
    )


def older(run: Run) -> str:
    """The note on a cell that its connector's newest run did not settle."""
    build = engine(run.engine)
    return f"From an older run, {run.run_id} of {moment(run.started)} with {build}."


def engine(build: EngineBuild | None) -> str:
    """Such as ``vllm 0.32.0 (cuda)``."""
    if build is None:
        return "not recorded"
    return f"{build.distribution} {build.version} ({build.device})"


def suite(build: Suite) -> str:
    """Such as ``kv-conformance 0.1.0 (1a2b3c4d5e)``."""
    commit = f" ({build.commit[:10]})" if build.commit else ""
    return f"{build.name} {build.version}{commit}"


def host(machine: Host) -> str:
    """A machine in one line: platform, processor, memory and accelerators."""
    if not machine.cores:  # servers that were running already, on a machine of their own
        return machine.platform
    memory = f"{machine.memory_bytes / 2**30:.0f} GiB"
    return (
        f"{machine.platform}, {machine.cpu} ({machine.cores} cores, {memory}), "
        f"Python {machine.python}, {_gpus(machine.gpus)}"
    )


def _gpus(gpus: Iterable[Gpu]) -> str:
    kinds = [f"{gpu.name} ({gpu.memory_bytes / 2**30:.0f} GiB)" for gpu in gpus]
    return ", ".join(f"{kinds.count(kind)} × {kind}" for kind in dict.fromkeys(kinds)) or "no GPU"


def headline(matrix: Matrix) -> list[tuple[str, str]]:
    """What was tested with what: each distinct answer once, newest run first."""
    runs = matrix.runs[::-1]
    packages = [f"{name} {version}" for run in runs for name, version in run.packages.items()]
    return [
        ("Generated on", f"{moment(runs[0].started)}, the start of {_newest_of(len(runs))}"),
        ("Engine", _each(engine(run.engine) for run in runs)),
        ("Packages", _each(sorted(packages)) or "none recorded"),
        ("Suite", _each(suite(run.suite) for run in runs)),
        ("Host", _each(host(run.host) for run in runs)),
        ("Controls", trust_words.controls_in_brief(matrix)),
    ]


def _newest_of(count: int) -> str:
    return "the only run" if count == 1 else f"the newest of {count} runs"


def _each(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(texts))
