"""``kv-conformance selftest``: does the suite see what is broken on purpose?"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from conformance import __version__
from conformance.errors import UsageError

OVER = ("example", "nixl", "scripted")
# The kinds of faults that a connector's author is likeliest to make, all on one running pair.
FAST = (
    "another-requests-kv",
    "claim-and-load-nothing",
    "first-chunk-only",
    "load-zeros",
    "params-once",
    "recompute-silently",
    "report-unsent-bytes",
    "wrong-under-concurrency",
)


def selftest(
    mutant: Annotated[
        list[str], typer.Option("--mutant", help="Only this mutant; repeatable. Default: all.")
    ] = [],  # noqa: B006 (typer copies defaults)
    over: Annotated[
        list[str],
        typer.Option(
            "--over",
            help="Only mutants of this kind: nixl or example (connectors in real servers), or "
            "scripted (servers without vLLM); repeatable. Default: all.",
        ),
    ] = [],  # noqa: B006
    fast: Annotated[
        bool,
        typer.Option(
            "--fast",
            help="All scripted servers, and a few mutants of NixlConnector on one pair: minutes.",
        ),
    ] = False,
    sweep: Annotated[
        bool,
        typer.Option(
            "--sweep",
            help="Also try all that an ordinary pair is asked on load-zeros and "
            "recompute-silently, to see which checks nothing kills. Always so for all mutants.",
        ),
    ] = False,
    report: Annotated[
        Path, typer.Option(help="Folder for selftest.json, kill-matrix.md and the servers' logs.")
    ] = Path("reports/runs/selftest"),
    server_python: Annotated[
        list[str], typer.Option(help="Interpreter whose environment has vLLM and this suite.")
    ] = [],  # noqa: B006
    show: Annotated[
        bool, typer.Option("--list", help="Print the mutants, and what has to see them; no run.")
    ] = False,
) -> None:
    """Try checks on connectors and servers that are broken on purpose, and draw the kill matrix.

    Each mutant names checks that have to go red on it and checks that have to stay green. Exit
    codes: 0 every mutant was killed; 1 one survived, or a check went red that it does not concern;
    2 bad usage; 3 a mutant could not be tried; 130 interrupted.
    """
    from conformance.mutants import selftest as suite

    for name in over:
        if name not in OVER:
            raise UsageError(f"--over {name!r} is unknown. Known: {', '.join(OVER)}")
    if fast and (mutant or over):
        raise UsageError("--fast names its mutants itself: leave --mutant and --over out")
    chosen = suite.choose(
        FAST if fast else tuple(mutant),
        ("nixl", "scripted") if fast else tuple(over) or OVER,
        every_scripted=fast,
    )
    if show:
        typer.echo(suite.listed(chosen))
        return
    matrix = suite.begun(
        chosen,
        suite=f"kv-conformance {__version__}",
        started=datetime.now(UTC),
        whole=not (fast or mutant or over),
    )
    began = time.monotonic()
    try:
        pythons = server_python or [sys.executable]
        suite.run(chosen, matrix, report, pythons, typer.echo, sweep=sweep or matrix.whole)
        matrix.state = "finished"
    except KeyboardInterrupt:
        matrix.state = "interrupted"
    matrix.duration_s = round(time.monotonic() - began, 1)
    for page in suite.written(matrix, report):
        typer.echo(page)
    typer.echo(suite.in_brief(matrix))
    raise typer.Exit(int(matrix.exit_code))
