"""The kill matrix: which check saw which fault, as a report."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from conformance.mutants.catalogue import NONE
from conformance.mutants.trial import Over, Trial, Wanted
from conformance.verdict import ExitCode

FILE = "selftest.json"


class Mutant(BaseModel):
    """A row: one fault over one connector or scripted server."""

    model_config = ConfigDict(extra="forbid")

    name: str
    over: Over
    title: str


class KillMatrix(BaseModel):
    """What a selftest saw. ``mutants``: those that were asked for, tried or not."""

    model_config = ConfigDict(extra="forbid")

    schema_version: Literal[1] = 1
    suite: str
    engine: str
    started: datetime
    duration_s: float = 0.0
    state: Literal["running", "finished", "interrupted"] = "running"
    whole: bool = False
    mutants: list[Mutant] = Field(default_factory=list)
    trials: list[Trial] = Field(default_factory=list)

    def of(self, mutant: Mutant) -> list[Trial]:
        """The trials of one row."""
        return [t for t in self.trials if (t.mutant, t.over) == (mutant.name, mutant.over)]

    @property
    def survived(self) -> list[Trial]:
        """Trials in which a check did not see the fault that it had to see."""
        return [trial for trial in self.trials if trial.survived]

    @property
    def strayed(self) -> list[Trial]:
        """Trials in which a check went red over a fault, or none, that does not concern it."""
        return [trial for trial in self.trials if trial.strayed]

    @property
    def untried(self) -> list[Mutant]:
        """Mutants that no check was seen red on or failed to: nothing is known of them."""
        return [m for m in self.mutants if not any(t.wanted is Wanted.RED for t in self.of(m))]

    def killers(self) -> dict[str, list[str]]:
        """By cell, the mutants on which it went red."""
        found: dict[str, list[str]] = {}
        for trial in self.trials:
            if trial.red and trial.mutant != NONE and trial.wanted is not Wanted.GREEN:
                found.setdefault(trial.check, []).append(f"{trial.mutant} ({trial.over})")
        return found

    def idle(self, checks: Iterable[str]) -> list[str]:
        """Of these checks, those of which no cell ever killed a mutant."""
        killed = self.killers()
        return [
            check
            for check in checks
            if not any(cell == check or cell.startswith(f"{check}/") for cell in killed)
        ]

    @property
    def exit_code(self) -> ExitCode:
        """1 with a survivor or a stray, 130 if it was interrupted, 4 if nothing was tried."""
        if self.state == "interrupted":
            return ExitCode.INTERRUPTED
        if self.survived or self.strayed:
            return ExitCode.NOT_CONFORMANT
        if not self.trials:
            return ExitCode.NOTHING_RAN
        return ExitCode.HARNESS if self.untried else ExitCode.CONFORMANT


def save(matrix: KillMatrix, folder: Path) -> Path:
    """Write it, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    file, fresh = folder / FILE, folder / f"{FILE}.new"
    fresh.write_text(matrix.model_dump_json(indent=1) + "\n", encoding="utf-8")
    fresh.replace(file)
    return file
