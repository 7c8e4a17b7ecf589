"""``kv-conformance contract``: a connector's contract, tried in the engine's Python in seconds."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from conformance.contract_child import CONTRACTS, check_interpreter, run_contracts
from conformance.contract_results import ClauseResult
from conformance.contract_subject import Subject, of_class, of_connector, of_profile_file
from conformance.errors import UsageError
from conformance.serving.engine import inspect
from conformance.verdict import ExitCode

COLOURS = {"pass": "green", "fail": "red", "error": "red"}
NEEDED_PACKAGES = ("vllm", "torch", "pytest")


def contract(
    connector: Annotated[
        str | None, typer.Option("--connector", "-c", help="Connector of a shipped profile.")
    ] = None,
    profile: Annotated[
        Path | None, typer.Option("--profile", help="YAML profile of a connector of your own.")
    ] = None,
    class_name: Annotated[
        str | None,
        typer.Option("--class", help="pkg.mod:Class, a connector or a ConnectorContract of yours."),
    ] = None,
    extra_config: Annotated[
        str, typer.Option(help="With --class: kv_connector_extra_config as JSON.")
    ] = "{}",
    server_python: Annotated[
        str | None, typer.Option(help="Interpreter whose environment has vLLM and pytest.")
    ] = None,
    log: Annotated[
        Path | None, typer.Option(help="Keep what pytest and the engine print here.")
    ] = None,
) -> None:
    """Try a connector's contract in one process, without a server: one line a clause."""
    if sum(given is not None for given in (connector, profile, class_name)) != 1:
        raise UsageError("give exactly one of --connector NAME, --profile FILE, --class pkg.mod:C")
    if connector is not None:
        subject = of_connector(connector, server_python)
    elif profile is not None:
        subject = of_profile_file(profile, server_python)
    else:
        subject = of_class(str(class_name), extra_config, server_python)
    raise typer.Exit(run(subject, log))


def run(subject: Subject, log: Path | None = None) -> ExitCode:
    """Try all clauses, print a line for each and one for all."""
    check_interpreter(subject.python, *NEEDED_PACKAGES)
    engine = inspect(subject.python)
    typer.echo(f"contract of {subject.title}, vLLM {engine.version}, {engine.device}")
    started = time.monotonic()
    target = str(CONTRACTS / "configured.py")
    results = run_contracts(subject.python, target, show, subject.env, log)
    seconds = time.monotonic() - started
    counts = Counter(result.verdict for result in results)
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    typer.echo(f"{len(results)} clauses in {seconds:.0f} s: {told}")
    return exit_code(counts)


def show(result: ClauseResult) -> None:
    """One clause, one line; a broken requirement is spelled out."""
    line = f"  {result.verdict:<12}{result.clause}"
    if result.message:
        line += f": {result.message}"
    if result.verdict == "fail":
        line += f" [{result.requirement}]"
    typer.secho(line, fg=COLOURS.get(result.verdict))


def exit_code(counts: Counter[str]) -> ExitCode:
    """A clause that was not tried is no proof, and the connector's fault only beside a fail."""
    if counts["fail"] or counts["xpass"]:
        return ExitCode.NOT_CONFORMANT
    if not counts["pass"] and not counts["error"]:
        return ExitCode.NOTHING_RAN
    return ExitCode.HARNESS if counts["error"] or counts["not_run"] else ExitCode.CONFORMANT
