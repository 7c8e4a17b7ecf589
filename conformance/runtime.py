"""What the process that tries checks holds: engine, clock, servers."""

from __future__ import annotations

from collections.abc import Callable

from conformance.clock import RunClock
from conformance.crashes import CRASHES, CrashLedger
from conformance.errors import EnvironmentProblem, NotHere
from conformance.fleet import Fleet
from conformance.options import RunOptions
from conformance.pair import Pair
from conformance.profile import Profile
from conformance.registry import PlannedCell
from conformance.report import ServerStart
from conformance.serving.deployment import Launcher
from conformance.serving.devices import detect_gpus
from conformance.serving.engine import Installation, inspect
from conformance.serving.rootcause import without_install_paths
from conformance.serving.server import Server

EXCERPT_LINES = 40
_NOISE = ('"GET /metrics', '"GET /health', "Avg prompt throughput")


class Runtime:
    """The engine of a run and the servers started so far. Raises when there is no engine."""

    def __init__(self, options: RunOptions) -> None:
        self.options = options
        self.engine: Installation = inspect(options.server_python)
        self.gpus = detect_gpus(self.engine.device)
        self.clock = RunClock()
        self.on_start: Callable[[ServerStart], None] = lambda _: None
        self._starts: list[ServerStart] = []
        self._marks: dict[Server, int] = {}
        launcher = Launcher(options, self.engine, self.gpus, self.clock, self._note)
        ledger = CrashLedger(options.report / CRASHES)
        self._fleet = Fleet(options, launcher, self.clock, ledger)

    def pair(self, cell: PlannedCell) -> Pair:
        """The running pair a cell needs, named after it in the servers' logs."""
        self._must_be_possible(cell.profile)
        pair = self._fleet.pair(cell.profile, cell.model)
        for client in pair.clients():
            client.check = f"{cell.profile.name}/{cell.id}"
        servers = (pair.prefill.server, pair.decode.server)
        self._marks = {server: server.log_size() for server in servers}
        return pair

    def log_excerpt(self) -> str:
        """What both servers logged since the cell began, without the noise of polling."""
        parts = []
        for server, mark in self._marks.items():
            lines = [
                line
                for line in server.log_since(mark).splitlines()
                if not any(word in line for word in _NOISE)
            ]
            if lines:
                parts.append("\n".join([f"--- {server.role}", *lines[-EXCERPT_LINES:]]))
        return without_install_paths("\n".join(parts))

    def take_starts(self) -> list[ServerStart]:
        """Servers started since the last call."""
        taken, self._starts = self._starts, []
        return taken

    def close(self) -> None:
        """Stop every server."""
        self._fleet.close()

    def problem_with(self, profile: Profile) -> str | None:
        """Why a connector cannot run here, and the fix; ``None`` if it can."""
        if self.engine.device not in profile.platforms:
            return (
                f"{profile.title} runs on {', '.join(profile.platforms)}, and the vLLM in "
                f"{self.engine.python} is built for {self.engine.device}"
            )
        missing = self.engine.missing(profile.packages)
        if missing:
            return (
                f"{profile.title} needs {', '.join(missing)}, which {self.engine.python} lacks: "
                f"pip install {' '.join(missing)}, or name another environment with "
                "--server-python"
            )
        return None

    def _must_be_possible(self, profile: Profile) -> None:
        """A connector asked for by name that cannot run is an error, never a silent skip."""
        problem = self.problem_with(profile)
        if problem is None:
            return
        if profile.name in self.options.connectors:
            raise EnvironmentProblem(problem)
        raise NotHere(problem)

    def _note(self, start: ServerStart) -> None:
        self._starts.append(start)
        self.on_start(start)
