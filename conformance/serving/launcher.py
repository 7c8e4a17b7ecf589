"""Starts the deployments of one run."""

from __future__ import annotations

from collections.abc import Callable

from conformance.clock import RunClock
from conformance.errors import ServerStartError
from conformance.models import Model, obtain
from conformance.options import RunOptions
from conformance.profile import Profile
from conformance.report import Gpu, ServerStart
from conformance.serving.assembly import Assembly
from conformance.serving.deployment import Deployment, Shape
from conformance.serving.engine import Engines
from conformance.serving.server import wait_ready
from conformance.serving.spinners import calm

# A server that dies at start is tried once more: another process may have taken its port.
START_ATTEMPTS = 2


class Launcher:
    """Starts deployments of one run; what it starts has an owner before it runs."""

    def __init__(
        self,
        options: RunOptions,
        engines: Engines,
        gpus: list[Gpu],
        clock: RunClock,
        on_start: Callable[[ServerStart], None],
    ) -> None:
        self._options = options
        self._engines = engines
        self._clock = clock
        self._on_start = on_start
        self._assembly = Assembly(options, engines, gpus)

    def model(self, name: str) -> Model:
        """A model, built if need be; building counts as starting up."""
        with self._clock.span("startup"):
            return obtain(name, self._engines.default)

    def launch(
        self, model: Model, profile: Profile, shape: Shape, *, and_reference: bool
    ) -> tuple[Deployment, Deployment | None]:
        """A deployment and its reference, where that is wanted; servers start at the same time.

        Raises :class:`ServerStartError`; nothing is left running then.
        """
        wanted: list[Callable[[], Deployment]] = [
            lambda: self._assembly.pair(model, profile, shape)
        ]
        if and_reference:
            wanted.append(lambda: self._assembly.reference(model, shape))
        made = self._launched(wanted)
        return made[0], made[1] if and_reference else None

    def launch_reference(self, model: Model, shape: Shape) -> Deployment:
        """The reference of a shape alone. Raises as :meth:`launch`."""
        return self._launched([lambda: self._assembly.reference(model, shape)])[0]

    def _launched(self, wanted: list[Callable[[], Deployment]]) -> list[Deployment]:
        with self._clock.span("startup"):
            for attempt in range(1, START_ATTEMPTS + 1):
                assembled: list[Deployment] = []
                try:
                    for assemble in wanted:
                        assembled.append(assemble())
                    self._start(assembled)
                    return assembled
                except BaseException as problem:
                    for deployment in assembled:
                        deployment.stop()
                    if attempt == START_ATTEMPTS or not _port_taken(problem):
                        raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _start(self, assembled: list[Deployment]) -> None:
        servers = [server for deployment in assembled for server in deployment.servers]
        began = self._clock.timing().wall_s
        try:
            for daemon in [daemon for deployment in assembled for daemon in deployment.daemons]:
                daemon.start()
                daemon.wait_ready()
            for server in servers:
                self._clock.server_starts += 1
                server.start()
            limit_s = assembled[0].key.shape.start_limit_s or self._options.start_timeout_s
            wait_ready(servers, limit_s)
            if self._engines.default.device == "cpu":
                calm([server.pid for server in servers])
        except BaseException as problem:
            self._note(assembled, None, str(problem) or type(problem).__name__)
            raise
        self._note(assembled, self._clock.timing().wall_s - began, None)

    def _note(
        self, assembled: list[Deployment], startup_s: float | None, problem: str | None
    ) -> None:
        for deployment in assembled:
            for server in deployment.servers:
                self._on_start(
                    ServerStart(
                        deployment=deployment.key.label,
                        role=server.role,
                        model=deployment.key.model,
                        command=server.plan.command,
                        block_size=server.block_size or None,
                        startup_s=round(startup_s, 1) if startup_s is not None else None,
                        problem=problem,
                    )
                )


def _port_taken(problem: BaseException) -> bool:
    cause = (problem.root_cause or "").lower() if isinstance(problem, ServerStartError) else ""
    return "already in use" in cause
