"""What the process that tries checks holds: engine, clock, servers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from conformance.assumptions.once import Once
from conformance.attached_fleet import AttachedFleet
from conformance.clock import RunClock
from conformance.crashes import CRASHES, CrashLedger
from conformance.declared import must_be_supported
from conformance.errors import EnvironmentProblem, NotHere, ServerStartError
from conformance.fleet import Fleet
from conformance.gate import Gate
from conformance.options import RunOptions
from conformance.pair import Pair
from conformance.profile import Profile
from conformance.refusal import reason_for
from conformance.registry import PlannedCell
from conformance.report import ServerStart
from conformance.serving.deployment import PAIR, TRIAL, Shape
from conformance.serving.devices import detect_gpus
from conformance.serving.engine import Engines, Installation
from conformance.serving.launcher import Launcher
from conformance.serving.leases import missing_program
from conformance.serving.rootcause import without_install_paths
from conformance.serving.served import Served
from conformance.site import Site, site_of
from conformance.variant_start import needs_own_servers, of_connector, of_engine

EXCERPT_LINES = 40
_NOISE = ('"GET /metrics', '"GET /health', "Avg prompt throughput")


class Pairs(Protocol):
    """Hands out pairs: started by us, or running already."""

    def pairs(self, profile: Profile, model_name: str, shape: Shape) -> list[Pair]:
        """Every prefill/decode pair of a topology, running."""

    def was_up(self, profile: Profile, model_name: str, shape: Shape = PAIR) -> bool:
        """Whether such a pair of this connector has been ready before."""

    def refused_before(self, profile: Profile, model_name: str) -> ServerStartError | None:
        """How a connector's ordinary servers failed to start, if they never did."""

    def reference(self, model_name: str, shape: Shape) -> None:
        """Raises :class:`ServerStartError` for what no server here can serve."""

    def trial(self, profile: Profile, model_name: str, shape: Shape = TRIAL) -> None:
        """Raises :class:`ServerStartError` for a connector that cannot start here."""

    def drop(self) -> None:
        """Let go of the pair that was handed out last, where it is ours."""

    def close(self) -> None:
        """Let go of every pair."""


class Runtime:
    """The engine of a run and its servers. Raises when there is neither engine nor pair."""

    def __init__(self, options: RunOptions) -> None:
        site = site_of(options)
        self.options = options = site.options
        self.engines: Engines = site.engines
        self.engine: Installation = self.engines.default
        self.gpus = detect_gpus(self.engine.device)
        self.clock = RunClock()
        self.gate = Gate(keep_going=options.keep_going)
        self.on_start: Callable[[ServerStart], None] = lambda _: None
        self.assumptions = Once(
            self.engine.version,
            {options.model_for(kind, self.engine.device) for kind in ("fast", "real")},
            keep_going=options.keep_going,
        )
        self._starts: list[ServerStart] = []
        self._marks: dict[Served, int] = {}
        self._fleet = self._fleet_at(site)

    def _fleet_at(self, site: Site) -> Pairs:
        options, ledger = site.options, CrashLedger(site.options.report / CRASHES)
        if options.attachment and site.standing:
            attached = AttachedFleet(
                options.attachment,
                site.standing,
                options.seed,
                self.clock,
                ledger,
                options.answer_limit_s,
            )
            attached.on_reference = self.assumptions.must_hold_elsewhere
            return attached
        launcher = Launcher(options, self.engines, self.gpus, self.clock, self._note)
        own = Fleet(options, launcher, self.clock, ledger)
        own.on_reference = self.assumptions.must_hold
        return own

    def pairs(self, cell: PlannedCell) -> list[Pair]:
        """The running pairs a cell needs, named after it in the servers' logs; none for a trial."""
        self.assumptions.must_not_be_broken()
        self._must_be_welcome(cell)
        must_be_supported(cell, keep_going=self.options.keep_going)
        self._must_be_possible(cell.profile)
        self.gate.must_be_open(cell)
        if self.engine.device in cell.check.not_on:
            raise NotHere(cell.check.not_on[self.engine.device])
        if needs_own_servers(cell):
            self._must_start_at_all(cell)
        pairs = [] if cell.check.shape.is_trial else self._started(cell)
        self._marks = {}
        for pair in pairs:
            pair.profile = cell.profile.in_variant(cell.check.variant)
            for client in pair.clients():
                client.check = f"{cell.profile.name}/{cell.id}"
            for server in (pair.prefill.server, pair.decode.server):
                self._marks[server] = server.log_size()
        return pairs

    def _started(self, cell: PlannedCell) -> list[Pair]:
        """Raises what a failed start means for the cell."""
        profile, device = cell.profile, self.engine.device
        if needs_own_servers(cell):
            return self._started_for_itself(cell)
        known = self._fleet.was_up(profile, cell.model)
        try:
            if not known and not profile.claims(device):
                self._fleet.trial(profile, cell.model)
            return self._fleet.pairs(profile, cell.model, cell.check.shape)
        except ServerStartError as problem:
            if known:  # an instance that was started again, or another shape
                raise
            raise reason_for(problem, profile, device, cell.id) from problem

    def _must_start_at_all(self, cell: PlannedCell) -> None:
        """Raises for a connector that starts with no model: another would say nothing new."""
        device = self.engine.device
        before = self._fleet.refused_before(cell.profile, self.options.model_for("fast", device))
        if before:
            raise reason_for(before, cell.profile, device, cell.id) from before

    def _started_for_itself(self, cell: PlannedCell) -> list[Pair]:
        """Servers that are unlike the other checks', the reference included."""
        profile, shape, device = cell.profile, cell.check.shape, self.engine.device
        try:
            return self._fleet.pairs(profile, cell.model, shape)
        except ServerStartError as problem:
            if self._fleet.was_up(profile, cell.model, shape):
                raise
            try:
                self._fleet.reference(cell.model, shape)
            except ServerStartError as alone:
                raise of_engine(alone, cell) from problem
            if not profile.claims(device):
                raise reason_for(problem, profile, device, cell.id) from problem
            raise of_connector(problem, cell) from problem

    def try_start(self, cell: PlannedCell) -> ServerStartError | None:
        """Start and stop one server in the shape of the cell's check; its error if it fails."""
        try:
            self._fleet.trial(cell.profile, cell.model, cell.check.shape)
        except ServerStartError as problem:
            return problem
        return None

    def log_excerpt(self) -> str:
        """What both servers logged since the cell began, without the noise of polling.

        Before it what went wrong when they started, where they were ready nevertheless.
        """
        parts = [
            f"--- {server.role}, before it was ready\n{server.survived}"
            for server in self._marks
            if server.survived
        ]
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

    def renew(self) -> None:
        """Have the next cell's pair started afresh, reference apart."""
        self._fleet.drop()

    def close(self) -> None:
        """Stop every server."""
        self._fleet.close()

    def problem_with(self, profile: Profile) -> str | None:
        """What a connector lacks here, and the fix; ``None`` if nothing.

        On a platform that the profile does not claim, the engine itself is asked, at start.
        """
        engine = self.engines.of(profile)
        missing = engine.missing(profile.packages)
        if missing and profile.claims(engine.device):
            return (
                f"{profile.title} needs {', '.join(missing)}, which {engine.python} lacks: "
                f"pip install {' '.join(missing)}, or name another environment with "
                "--server-python"
            )
        return None if self.options.attachment else missing_program(profile, engine.python)

    def _must_be_welcome(self, cell: PlannedCell) -> None:
        """Raises :class:`NotHere` for what nobody wants done to servers that serve others."""
        if cell.check.intrusive and self.options.attachment and not self.options.checks:
            raise NotHere(
                "it pauses or empties servers, or may end them, and these were started by "
                f"somebody else; ask for it by name: --check {cell.check.id!r}"
            )

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
