"""``plan``: what a run would start and try, and how long that should take."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from conformance.registry import PlannedCell
from conformance.serving.deployment import ReferenceKey
from conformance.timings import Timings

# Columns keep their words when the output is not a terminal.
PLAIN_WIDTH = 110


def show(cells: list[PlannedCell]) -> None:
    """Print deployments in the order they would run, with their cells and minutes."""
    out = Console(highlight=False)
    if not out.is_terminal:
        out = Console(highlight=False, width=PLAIN_WIDTH)
    timings = Timings()
    table = Table(title="Deployments, in order", title_justify="left")
    for name in ("deployment", "servers", "cells", "checks", "minutes"):
        table.add_column(name, justify="right" if name in ("cells", "minutes") else "left")
    running: ReferenceKey | None = None
    for deployment, group in _groups(cells).items():
        wanted = group[0].key.reference
        servers = "P D" if wanted == running else "P D reference"
        running = wanted
        seconds = timings.run_s(group)
        checks = ", ".join(dict.fromkeys(cell.check.id for cell in group))
        table.add_row(deployment, servers, str(len(group)), checks, f"{seconds / 60:.1f}")
    out.print(table)
    out.print(f"{len(cells)} cells, about {timings.run_s(cells) / 60:.1f} minutes")


def _groups(cells: list[PlannedCell]) -> dict[str, list[PlannedCell]]:
    groups: dict[str, list[PlannedCell]] = {}
    for cell in cells:
        groups.setdefault(cell.deployment, []).append(cell)
    return groups
