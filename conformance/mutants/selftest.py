"""A selftest: which mutants are tried, one kind after the other, and what is written of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from conformance.errors import UsageError
from conformance.mutants import catalogue, kill_matrix, kill_matrix_page, real
from conformance.mutants.fault import EVERYWHERE
from conformance.mutants.harness import FAULTS, run_harness_faults
from conformance.mutants.kill_matrix import KillMatrix, Mutant
from conformance.mutants.trial import Trial
from conformance.runtime import Runtime

Echo = Callable[[str], None]


@dataclass(frozen=True)
class Chosen:
    """Names of mutants by what they are made of."""

    connectors: tuple[str, ...]
    overs: tuple[str, ...]
    scripted: tuple[str, ...]

    def mutants(self) -> Iterator[Mutant]:
        """The rows of the matrix."""
        for name in self.connectors:
            fault = catalogue.fault_named(name)
            for over in (over for over in fault.over if over in self.overs):
                yield Mutant.model_validate(
                    {"name": name, "over": over, "title": catalogue.title(name)}
                )
        for fault_of_servers in FAULTS:
            if fault_of_servers.name in self.scripted:
                yield Mutant(
                    name=fault_of_servers.name, over="scripted", title=fault_of_servers.title
                )


def choose(names: tuple[str, ...], overs: tuple[str, ...], *, every_scripted: bool) -> Chosen:
    """Those of these names, or all if there are none, of the kinds that are wanted.

    Raises :class:`UsageError` for a name that no mutant has.
    """
    connectors, scripted = catalogue.names(), [fault.name for fault in FAULTS]
    for name in names:
        if name not in (*connectors, *scripted):
            known = ", ".join((*connectors, *scripted))
            raise UsageError(f"--mutant {name!r} is unknown. Known: {known}")
    real_ones = tuple(over for over in EVERYWHERE if over in overs)
    return Chosen(
        tuple(name for name in connectors if real_ones and (not names or name in names)),
        real_ones,
        tuple(
            name
            for name in scripted
            if "scripted" in overs and (every_scripted or not names or name in names)
        ),
    )


def listed(chosen: Chosen) -> str:
    """The mutants in words, and what has to see them."""
    lines = []
    for mutant in chosen.mutants():
        fault = next((f for f in FAULTS if f.name == mutant.name), None)
        red = fault.red if fault else catalogue.fault_named(mutant.name).red
        lines += [f"{mutant.name} ({mutant.over}): {mutant.title}", f"    {', '.join(red)}"]
    return "\n".join(lines)


def begun(chosen: Chosen, *, suite: str, started: datetime, whole: bool) -> KillMatrix:
    """The matrix before anything was tried."""
    return KillMatrix(
        suite=suite,
        engine="scripted servers",
        started=started,
        whole=whole,
        mutants=list(chosen.mutants()),
    )


def run(
    chosen: Chosen,
    matrix: KillMatrix,
    folder: Path,
    server_python: list[str],
    echo: Echo,
    *,
    sweep: bool,
) -> None:
    """Try all of them; the matrix and its file grow with every trial.

    ``sweep``: as in :func:`conformance.mutants.real.attempts`.
    """

    def say(trial: Trial) -> None:
        matrix.trials.append(trial)
        kill_matrix.save(matrix, folder)
        echo(_line(trial, len(matrix.trials)))

    if chosen.scripted:
        run_harness_faults(chosen.scripted, say)
    if not chosen.connectors:
        return
    attempts = real.attempts(chosen.connectors, chosen.overs, sweep=sweep)
    echo(f"{len(attempts)} trials on {len({a.key for a in attempts})} kinds of servers")
    with _runtime(folder, server_python) as runtime:
        engine = runtime.engine
        matrix.engine = f"{engine.distribution} {engine.version} on {engine.device}"
        real.run(attempts, runtime, say)


def written(matrix: KillMatrix, folder: Path) -> list[Path]:
    """The report and its page."""
    file = kill_matrix.save(matrix, folder)
    return [file, kill_matrix_page.write(matrix, folder)]


def in_brief(matrix: KillMatrix) -> str:
    """The last lines on the terminal: what survived, and the exit code's reason."""
    lines = [f"survived: {_line(trial)}" for trial in matrix.survived]
    lines += [f"red without a reason: {_line(trial)}" for trial in matrix.strayed]
    lines += [f"not tried: {mutant.name} over {mutant.over}" for mutant in matrix.untried]
    killed = sum(kill_matrix_page.is_killed(matrix, mutant) for mutant in matrix.mutants)
    lines.append(
        f"{killed} of {len(matrix.mutants)} mutants killed, {len(matrix.trials)} trials in "
        f"{matrix.duration_s / 60:.1f} min; exit {int(matrix.exit_code)}"
    )
    return "\n".join(lines)


@contextmanager
def _runtime(folder: Path, server_python: list[str]) -> Iterator[Runtime]:
    runtime = Runtime(real.options_for(folder, server_python))
    try:
        yield runtime
    finally:
        runtime.close()


def _line(trial: Trial, number: int | None = None) -> str:
    count = "" if number is None else f"{number:4} "
    mark = "SURVIVED: " if trial.survived else "NO REASON: " if trial.strayed else ""
    said = f": {_first(trial.message.splitlines())}" if trial.red else ""
    return (
        f"{count}{trial.over} {trial.mutant} {trial.check} {mark}{trial.verdict} "
        f"{trial.duration_s:.1f} s{said}"
    )


def _first(lines: Iterable[str]) -> str:
    return next(iter(lines), "")[:160]
