"""How long things took last time, so that ``plan`` can name minutes and ``run`` keep to them."""

from __future__ import annotations

import json
from pathlib import Path

from conformance.data import cache
from conformance.registry import PlannedCell
from conformance.report import Cell, Report

# First guesses, measured on two cores without a GPU (vLLM 0.32.0 CPU build, 2026-11-30).
FIRST_START_S = 60.0
FIRST_CELL_S = 3.0
FIRST_REAL_CELL_S = 12.0


class Timings:
    """Seconds by cell and by deployment, kept in the cache folder."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file or cache() / "timings.json"
        try:
            found = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            found = {}
        self._known: dict[str, float] = (
            {name: value for name, value in found.items() if isinstance(value, int | float)}
            if isinstance(found, dict)
            else {}
        )

    def cell_s(self, cell: PlannedCell) -> float:
        """Expected seconds of one cell, without starting servers."""
        guess = FIRST_REAL_CELL_S if cell.check.model == "real" else FIRST_CELL_S
        return self._known.get(f"{cell.deployment} | {cell.id}", guess)

    def start_s(self, deployment: str) -> float:
        """Expected seconds to start a deployment."""
        return self._known.get(deployment, FIRST_START_S)

    def run_s(self, cells: list[PlannedCell]) -> float:
        """Expected seconds of a whole run."""
        starts = sum(self.start_s(name) for name in {cell.deployment for cell in cells})
        return starts + sum(self.cell_s(cell) for cell in cells)

    def learn(self, cell: Cell) -> None:
        """Remember a finished cell."""
        self._known[f"{cell.deployment} | {cell.check}"] = cell.duration_s

    def learn_starts(self, report: Report) -> None:
        """Remember how long deployments took to start."""
        for start in report.servers:
            if start.startup_s:
                self._known[start.deployment] = start.startup_s

    def save(self) -> None:
        """Write the file; a cache that cannot be written is only a worse guess next time."""
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._file.write_text(json.dumps(self._known, indent=1), encoding="utf-8")
        except OSError:
            return
