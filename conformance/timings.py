"""How long things took last time, so that ``plan`` can name minutes and ``run`` keep to them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from conformance.data import cache
from conformance.registry import PlannedCell
from conformance.report import Cell, Report

# First guesses, measured on two cores without a GPU (vLLM 0.32.0 CPU build, 2026-11-30).
FIRST_START_S = 60.0
FIRST_CELL_S = 3.0
FIRST_REAL_CELL_S = 12.0
# Of a deployment: seconds of starts after the first, for each of its cells.
AGAIN = " | again"
# Of how many cells that was learned.
OF_CELLS = " | again, of cells"


class Timings:
    """Seconds by cell and by deployment, kept in the cache folder."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file or cache() / "timings.json"
        try:
            found = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            found = {}
        self._tried: Counter[str] = Counter()
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
        names = {cell.deployment for cell in cells}
        return sum(self.start_s(name) for name in names) + sum(map(self._with_crashes_s, cells))

    def _with_crashes_s(self, cell: PlannedCell) -> float:
        return self.cell_s(cell) + self._known.get(f"{cell.deployment}{AGAIN}", 0.0)

    def learn(self, cell: Cell) -> None:
        """Remember a finished cell."""
        self._known[f"{cell.deployment} | {cell.check}"] = cell.duration_s
        self._tried[cell.deployment] += 1

    def learn_starts(self, report: Report) -> None:
        """Remember how long deployments took to start, and to start again after a crash.

        Servers of one start have one time. Of a deployment that never came up, or was not needed
        to come up, the time is that of its cells. Crashes belong to some of the cells, and are
        spread over all; a run of fewer cells than before may have had just those.
        """
        times: dict[str, list[float]] = {name: [] for name in self._tried}
        for start in report.servers:
            known = times.setdefault(start.deployment, [])
            if start.startup_s and start.startup_s not in known:
                known.append(start.startup_s)
        for name, found in times.items():
            self._known[name] = found[0] if found else 0.0
            tried = self._tried[name]
            if tried >= self._known.get(f"{name}{OF_CELLS}", 0.0):
                self._known[f"{name}{AGAIN}"] = sum(found[1:]) / max(tried, 1)
                self._known[f"{name}{OF_CELLS}"] = tried

    def save(self) -> None:
        """Write the file; a cache that cannot be written is only a worse guess next time."""
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._file.write_text(json.dumps(self._known, indent=1), encoding="utf-8")
        except OSError:
            return
