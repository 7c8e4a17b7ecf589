"""``kv-conformance matrix``: reports as the compatibility matrix, and what changed since."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from conformance.report import load


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
