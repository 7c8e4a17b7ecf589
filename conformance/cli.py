"""The command line: a run, and every command around one.

What only one command needs is imported by it: ``probe`` has to answer within seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from conformance import __version__
from conformance.assumptions_command import assumptions
from conformance.attached_options import (
    ApiKey,
    DecodeUrl,
    HandoffPort,
    Header,
    PrefillUrl,
    ReferenceUrl,
    RouterUrl,
)
from conformance.attachment import Attachment
from conformance.certify_command import certify
from conformance.contract_command import contract
from conformance.deadline import ANSWER_LIMIT_S
from conformance.errors import SuiteError, UsageError
from conformance.expectations_command import KnownFailures
from conformance.expectations_command import app as expectations_commands
from conformance.init_profile import init_profile
from conformance.options import RunOptions
from conformance.probe_command import probe
from conformance.registry import plan
from conformance.report import Report, load
from conformance.selftest_command import selftest
from conformance.serving.engine import inspect
from conformance.serving.ports import DEFAULT_RANGE

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

Connectors = Annotated[
    list[str], typer.Option("--connector", "-c", help="Connector to try; repeatable. Default: all.")
]
Features = Annotated[
    list[str], typer.Option("--feature", "-f", help="Only checks of this feature; repeatable.")
]
Checks = Annotated[
    list[str],
    typer.Option("--check", help="Only this check id or pattern, such as 'length/*'; repeatable."),
]
Levels = Annotated[
    list[str],
    typer.Option(
        "--level",
        help="Only cells of this level: core (asked of every connector), extended or provisional; "
        "repeatable. Default: all.",
    ),
]
Profiles = Annotated[
    list[Path], typer.Option("--profile", help="YAML profile of a connector of your own.")
]
ModelName = Annotated[
    str | None,
    typer.Option(help="Model recipe, Hugging Face id or folder. Default: by device, see README."),
]
RealModel = Annotated[
    str,
    typer.Option(help="Real-model checks: auto (where the profile asks for them), all or none."),
]
Seed = Annotated[
    int | None,
    typer.Option(
        help="Prompts depend on it alone. Default: 0; on a running pair another each time, since "
        "prompts that it has seen are in its caches.",
        show_default=False,
    ),
]
ServerPython = Annotated[
    list[str],
    typer.Option(
        help="Interpreter whose environment has vLLM (the suite never imports it), or "
        "CONNECTOR=INTERPRETER for one connector's servers; repeatable."
    ),
]
AnswerLimit = Annotated[
    float,
    typer.Option(
        help="Seconds for an answer to be whole; longer is a hang, and the check fails. Raise it "
        "for models and machines that need longer for some tokens.",
    ),
]
KeepGoing = Annotated[
    bool,
    typer.Option(
        help="Also try the features of a connector that does not transfer, those that its "
        "profile declares unsupported, and all of them where vLLM does not do what the suite takes "
        "for granted."
    ),
]


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


@app.command(name="plan")
def plan_command(
    connector: Connectors = [],  # noqa: B006 (typer copies defaults)
    feature: Features = [],  # noqa: B006
    check: Checks = [],  # noqa: B006
    level: Levels = [],  # noqa: B006
    profile: Profiles = [],  # noqa: B006
    model: ModelName = None,
    real_model: RealModel = "auto",
    server_python: ServerPython = [],  # noqa: B006
) -> None:
    """Deployments, checks and expected minutes, before anything starts."""
    options = RunOptions.of(
        connectors=connector,
        features=feature,
        checks=check,
        levels=level,
        profiles=profile,
        model=model,
        real_model=real_model,
        server_python=server_python,
    )
    from conformance import planner

    planner.show(plan(options, inspect(options.server_python).device))


@app.command()
def run(
    connector: Connectors = [],  # noqa: B006
    feature: Features = [],  # noqa: B006
    check: Checks = [],  # noqa: B006
    level: Levels = [],  # noqa: B006
    profile: Profiles = [],  # noqa: B006
    model: ModelName = None,
    real_model: RealModel = "auto",
    keep_going: KeepGoing = False,
    expectations: KnownFailures = None,
    seed: Seed = None,
    report: Annotated[
        Path, typer.Option(help="Folder for report.json, junit.xml, logs and the matrix.")
    ] = Path("reports/runs/latest"),
    server_python: ServerPython = [],  # noqa: B006
    port_range: Annotated[str, typer.Option(help="Ports to lease from.")] = DEFAULT_RANGE,
    start_timeout: Annotated[
        float, typer.Option(help="Seconds for a deployment's servers to become ready.")
    ] = 420.0,
    answer_limit: AnswerLimit = ANSWER_LIMIT_S,
    workers: Annotated[
        int, typer.Option("--workers", "-n", help="Deployments at once (pytest-xdist).")
    ] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only the summary.")] = False,
    prefill_url: PrefillUrl = None,
    decode_url: DecodeUrl = None,
    reference_url: ReferenceUrl = None,
    router_url: RouterUrl = None,
    api_key: ApiKey = None,
    header: Header = [],  # noqa: B006
    handoff_port: HandoffPort = [],  # noqa: B006
) -> None:
    """Launch the pairs, try the checks, write the report and the matrix.

    With --prefill-url and --decode-url nothing is launched: the checks that need no restart are
    tried on the pair that runs there. Keep other traffic off it meanwhile, for its counters are
    the evidence. Without --reference-url decode itself, asked without the handoff, says what the
    right answer is.
    """
    options = RunOptions.of(
        connectors=connector,
        features=feature,
        checks=check,
        levels=level,
        profiles=profile,
        model=model,
        real_model=real_model,
        keep_going=keep_going,
        expectations=expectations,
        seed=seed,
        report=report,
        server_python=server_python,
        port_range=port_range,
        start_timeout_s=start_timeout,
        answer_limit_s=answer_limit,
        attachment=Attachment.of(
            prefill_url,
            decode_url,
            reference_url=reference_url,
            router_url=router_url,
            api_key=api_key,
            headers=header,
            handoff_ports=handoff_port,
        ),
    )
    from conformance.execution import try_checks

    raise typer.Exit(try_checks(options, workers=workers, quiet=quiet))


@app.command()
def replay(
    report: Annotated[Path, typer.Argument(help="A run's folder or its report.json.")],
    cell: Annotated[str, typer.Argument(help="CONNECTOR/CHECK, such as nixl/length/B+1.")],
    out: Annotated[
        Path | None, typer.Option("--report", help="Folder for the replay's own report.")
    ] = None,
    server_python: Annotated[
        str | None, typer.Option(help="Another interpreter than the run's.")
    ] = None,
) -> None:
    """Run one cell of a report again, with the run's own seed, model and profile."""
    found = load(report)
    name, check = _named_cell(found, cell)
    folder = out or _replay_folder(report, cell)
    given = {
        **found.options,
        "connectors": [name],
        "features": [],
        "levels": [],
        "checks": [check],
        "real_model": "all",
        "expectations": None,  # what is seen, whatever is expected
        "report": folder,
    }
    if given.get("attachment"):
        given["seed"] = None  # the pair has seen the run's prompts
    own = given.pop("server_pythons", {}).get(name)
    used = server_python or own or given["server_python"]
    given["server_python"] = [used]
    from conformance.execution import try_checks

    raise typer.Exit(try_checks(RunOptions.of(**given), workers=0, quiet=False))


app.command()(assumptions)
app.command()(contract)
app.command()(certify)
app.command()(init_profile)
app.command()(probe)
app.command()(selftest)
app.add_typer(expectations_commands, name="expectations")


@app.command()
def matrix(
    reports: Annotated[list[Path], typer.Argument(help="Runs' folders or report.json files.")],
    out: Annotated[Path, typer.Option(help="Where matrix.md, .html, .json and badges go.")] = Path(
        "reports/matrix"
    ),
    against: Annotated[
        list[Path],
        typer.Option(
            help="An earlier report: also write what changed since (diff.md, .html and .json), and "
            "exit 1 if a check that passed then does not now; repeatable."
        ),
    ] = [],  # noqa: B006
) -> None:
    """Render reports as the compatibility matrix: Markdown, one HTML page, JSON, badges."""
    from matrix import compare, in_brief, render

    found = [load(report) for report in reports]
    older = [load(report) for report in against]
    for path in render(found, out):
        typer.echo(path)
    if older:
        changed, pages = compare(older, found, out)
        for path in pages:
            typer.echo(path)
        typer.echo(in_brief(changed))
        raise typer.Exit(changed.exit_code)


def _named_cell(report: Report, name: str) -> tuple[str, str]:
    known = [f"{c.name}/{cell.check}" for c in report.connectors for cell in c.cells]
    if name not in known:
        raise UsageError(f"cell {name!r} is not in that report; it has: {', '.join(known)}")
    connector, _, check = name.partition("/")
    return connector, check


def _replay_folder(report: Path, cell: str) -> Path:
    base = report if report.is_dir() else report.parent
    return base / "replays" / cell.replace("/", "_").replace(" ", "_")
