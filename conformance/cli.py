"""The command line: a run, and every command around one.

What only one command needs is imported by it: ``probe`` has to answer within seconds.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from conformance import __version__
from conformance.assumptions_command import assumptions
from conformance.certify_command import certify
from conformance.choice_options import ServerPython
from conformance.contract_command import contract
from conformance.errors import SuiteError
from conformance.expectations_command import app as expectations_commands
from conformance.init_profile import init_profile
from conformance.matrix_command import matrix
from conformance.options import RunOptions
from conformance.probe_command import probe
from conformance.replay_command import replay
from conformance.run_command import plan, run
from conformance.selftest_command import selftest

EXIT_CODES = """
Exit codes: 0 conformant; 1 not conformant (fail, degraded, xpass, or an expectation that is
stale, unmatched or expired); 2 bad usage or configuration; 3 harness error; 4 nothing ran;
130 interrupted.
"""

app = typer.Typer(
    help="Knows whether a vLLM KV connector really works: launches real prefill/decode pairs, "
    "demands proof that the KV moved and was used, and draws the compatibility matrix."
    + EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def main() -> None:
    """Entry point of the console script."""
    try:
        app()
    except SuiteError as problem:
        typer.secho(f"kv-conformance: {problem}", err=True, fg="red")
        sys.exit(problem.exit_code)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it and exit.")
    ] = False,
) -> None:
    """Common options."""


@app.command(name="doctor")
def doctor_command(
    server_python: ServerPython = [],  # noqa: B006
) -> None:
    """What can run here, what cannot and why, and what to do about it."""
    from conformance import doctor

    raise typer.Exit(doctor.examine(RunOptions.of(server_python=server_python)))


app.command()(plan)
app.command()(run)
app.command()(replay)
app.command()(matrix)
app.command()(assumptions)
app.command()(contract)
app.command()(certify)
app.command()(init_profile)
app.command()(probe)
app.command()(selftest)
app.add_typer(expectations_commands, name="expectations")
