"""``kv-conformance certify``: a frozen requirement set, judged strictly, ends in a certificate."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from conformance.certificate import Certificate
from conformance.certificate_files import remove_old, write
from conformance.certifying import certify_report
from conformance.choice_options import AnswerLimit, ModelName, Ports, StartTimeout
from conformance.deadline import ANSWER_LIMIT_S, START_LIMIT_S
from conformance.errors import UsageError
from conformance.options import RunOptions
from conformance.profile import Profile
from conformance.profile_file import builtin_profiles, load_profile
from conformance.report import load
from conformance.requirement_sets import (
    RequirementSet,
    catalogue,
    differences,
    latest,
    required_cells,
)
from conformance.serving.ports import DEFAULT_RANGE
from conformance.site import site_of
from conformance.verdict import ExitCode

DEFAULT_FOLDER = Path("reports/certificates")
_JUDGED = (ExitCode.CONFORMANT, ExitCode.NOT_CONFORMANT, ExitCode.HARNESS, ExitCode.NOTHING_RAN)


def certify(
    profile: Annotated[Path, typer.Option("--profile", help="YAML profile of the connector.")],
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the certificate and the run behind it. Default: "
            f"{DEFAULT_FOLDER}/NAME."
        ),
    ] = None,
    model: ModelName = None,
    seed: Annotated[int, typer.Option(help="Prompts depend on it alone.")] = 0,
    server_python: Annotated[
        list[str] | None,
        typer.Option(help="Interpreter whose environment has vLLM, as for run; repeatable."),
    ] = None,
    port_range: Ports = DEFAULT_RANGE,
    start_timeout: StartTimeout = START_LIMIT_S,
    answer_limit: AnswerLimit = ANSWER_LIMIT_S,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", "-x", help="End with the first cell that is red.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only the summary.")] = False,
) -> None:
    """Try a connector on the frozen set of core checks and write a certificate, or why not.

    Strict: every cell has to pass with evidence, or its feature has to be declared unsupported in
    the profile, with a source; a connector that cannot transfer has to be found out beside it.
    Exit codes: 0 certified; 1 not, with every reason; 2 bad usage; 130 interrupted.
    """
    subject, kept = load_profile(profile), current_set()
    options = options_for(
        subject,
        kept,
        report=out or DEFAULT_FOLDER / subject.name,
        model=model,
        seed=seed,
        server_python=server_python or [],
        port_range=port_range,
        start_timeout_s=start_timeout,
        answer_limit_s=answer_limit,
    )
    remove_old(options.report)
    from conformance.execution import try_checks  # imports pytest, which no other command needs

    code = try_checks(options, workers=0, quiet=quiet, fail_fast=fail_fast)
    if code not in _JUDGED:
        raise typer.Exit(code)
    packages = packages_of(options, subject)
    made = certify_report(load(options.report), subject, kept, packages, repeat_line(options))
    raise typer.Exit(tell(made, write(made, options.report)))


def current_set() -> RequirementSet:
    """The latest set. Raises :class:`UsageError` where this suite's checks are no longer its."""
    kept = latest()
    changes = differences(kept, catalogue()) if kept else ["there is no set"]
    if kept is None or changes:
        raise UsageError(
            f"the checks of this suite are not those of {kept.name if kept else 'any set'} "
            f"({'; '.join(changes)}): run python -m conformance.requirement_sets to freeze them"
        )
    return kept


def options_for(subject: Profile, kept: RequirementSet, **given: Any) -> RunOptions:
    """A run of the required cells, with the shipped controls. Raises :class:`UsageError`."""
    if subject.control:
        raise UsageError(
            f"profile {subject.path}: control: a connector that has to be found out cannot be "
            "certified; remove the line if it is not one"
        )
    controls = [one.name for one in builtin_profiles().values() if one.control]
    if subject.name in controls:
        raise UsageError(
            f"profile {subject.path}: name: {subject.name!r} is a control's; choose another"
        )
    return RunOptions.of(
        connectors=(subject.name, *controls),
        profiles=(subject.path,),
        checks=tuple(required_cells(kept, subject)),
        real_model="none",
        **given,
    )


def packages_of(options: RunOptions, subject: Profile) -> dict[str, str]:
    """Versions in the environment of a connector's servers, its own package among them."""
    return site_of(options).engines.of(subject).packages


def repeat_line(options: RunOptions) -> str:
    """The command that makes the same certificate."""
    parts = ["kv-conformance", "certify", "--profile", str(options.profiles[0])]
    if options.model:
        parts += ["--model", options.model]
    if options.server_python != sys.executable:
        parts += ["--server-python", options.server_python]
    for name, python in options.server_pythons.items():
        parts += ["--server-python", f"{name}={python}"]
    if options.answer_limit_s != ANSWER_LIMIT_S:
        parts += ["--answer-limit", f"{options.answer_limit_s:g}"]
    return shlex.join([*parts, "--seed", str(options.seed)])


def tell(made: Certificate, files: list[Path]) -> ExitCode:
    """The outcome in words; every reason where it is refused."""
    name = f"{made.requirement_set.id}-{made.requirement_set.version}"
    if made.certified:
        excused = sum(len(one.cells) for one in made.exceptions)
        told = f", {excused} of them by a declared exception" if excused else ""
        words = f"certified: {made.subject.title} meets {name}: {len(made.cells)} cells{told}"
        typer.secho(words, fg="green")
    else:
        typer.secho(f"not certified: {made.subject.title} does not meet {name}:", fg="red")
        for reason, cells in made.reasons().items():
            typer.echo(f"  {', '.join(cells)}: {reason}")
    for file in files:
        typer.echo(file)
    return ExitCode.CONFORMANT if made.certified else ExitCode.NOT_CONFORMANT
