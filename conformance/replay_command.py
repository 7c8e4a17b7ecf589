"""``kv-conformance replay``: one cell of a report, once more."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from conformance.errors import UsageError
from conformance.options import RunOptions
from conformance.report import Report, load


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


def _named_cell(report: Report, name: str) -> tuple[str, str]:
    known = [f"{c.name}/{cell.check}" for c in report.connectors for cell in c.cells]
    if name not in known:
        raise UsageError(f"cell {name!r} is not in that report; it has: {', '.join(known)}")
    connector, _, check = name.partition("/")
    return connector, check


def _replay_folder(report: Path, cell: str) -> Path:
    base = report if report.is_dir() else report.parent
    return base / "replays" / cell.replace("/", "_").replace(" ", "_")
