"""Starts the deployments of one run."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from conformance.clock import RunClock
from conformance.errors import ServerStartError
from conformance.models import Model, obtain
from conformance.options import RunOptions
from conformance.placeholders import fill
from conformance.profile import Profile, Role
from conformance.report import Gpu, ServerStart
from conformance.serving.daemon import DaemonProcess
from conformance.serving.damaging import damage_for, python_path
from conformance.serving.deployment import Deployment, Key, Shape
from conformance.serving.devices import Placement, place
from conformance.serving.engine import Engines, Installation
from conformance.serving.leases import Leases
from conformance.serving.ports import PortRange
from conformance.serving.process import ProcessPlan
from conformance.serving.served import ServerRole
from conformance.serving.server import Server, ServerPlan, wait_ready
from conformance.serving.spinners import calm

MAX_MODEL_LEN = 2048
# Small, so that a prompt of a few blocks already needs more than one scheduler step.
TOKEN_BUDGET = 512
# JSON allows any whitespace between tokens, and a model with random weights never stops at it.
STRUCTURED_OUTPUTS = {"backend": "xgrammar", "disable_any_whitespace": True}
# Changes only answers to requests with tools (vLLM refuses tool_choice "auto" without it). The
# format of this parser is JSON between two tags, which needs nothing of a model.
TOOL_CALLS = ("--enable-auto-tool-choice", "--tool-call-parser", "hermes")
# A server that dies at start is tried once more: another process may have taken its port.
START_ATTEMPTS = 2

_ENV = {
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_HOST_IP": "127.0.0.1",
    # Stores keyed by vLLM's block hashes need both processes to hash alike (LMCache#1139).
    "PYTHONHASHSEED": "0",
}


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
        self._gpus = gpus
        self._clock = clock
        self._on_start = on_start
        self._ports = PortRange.parse(options.port_range)
        self._started = 0

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
        with self._clock.span("startup"):
            for attempt in range(1, START_ATTEMPTS + 1):
                planned: list[Deployment] = []
                try:
                    self._plan(planned, model, profile, shape, and_reference)
                    self._start(planned)
                    return planned[0], planned[1] if and_reference else None
                except BaseException as problem:
                    for deployment in planned:
                        deployment.stop()
                    if attempt == START_ATTEMPTS or not _port_taken(problem):
                        raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _plan(
        self,
        planned: list[Deployment],
        model: Model,
        profile: Profile,
        shape: Shape,
        and_reference: bool,
    ) -> None:
        count = shape.prefills + shape.decodes + 1
        spots = place(self._engines.default.device, self._gpus, count, os.cpu_count() or 1)
        pair = Deployment(Key(profile.name, model.name, shape))
        planned.append(pair)
        self._plan_instances(pair, model, profile, shape, spots)
        if and_reference:
            reference = Deployment(Key(None, model.name))
            planned.append(reference)
            command = self._command(self._engines.default, model, spots[-1])
            reference.references.append(
                self._server(reference.key, "reference", model, command, spots[-1].env, [])
            )

    def _plan_instances(
        self,
        pair: Deployment,
        model: Model,
        profile: Profile,
        shape: Shape,
        spots: list[Placement],
    ) -> None:
        engine = self._engines.of(profile)
        root = Path(tempfile.mkdtemp(prefix="kvc-shared-"))
        pair.leases = Leases(profile, engine.python, root, self._ports)
        pair.leases.prepare()
        pair.damage = damage_for(profile, pair.leases)
        pair.damage_of_child = {part.name: damage_for(part, pair.leases) for part in profile.parts}
        for daemon in profile.daemons:
            plan = ProcessPlan(
                f"daemon {daemon.name}",
                [str(part) for part in fill(daemon.command, pair.leases.shared)],
                {k: str(v) for k, v in fill(daemon.env, pair.leases.shared).items()},
                self._log(pair.key, daemon.name),
                [root],
            )
            port = int(pair.leases.shared["port", daemon.ready_port])
            pair.daemons.append(DaemonProcess(plan, port, daemon.ready_path, daemon.start_limit_s))
        spot = iter(spots)
        sides: tuple[tuple[Role, int, tuple[str, ...], list[Server]], ...] = (
            ("prefill", shape.prefills, shape.prefill_args, pair.prefills),
            ("decode", shape.decodes, shape.decode_args, pair.decodes),
        )
        for role, count, more, servers in sides:
            for _ in range(count):
                servers.append(self._instance(pair, engine, model, profile, role, next(spot), more))

    def _instance(
        self,
        pair: Deployment,
        engine: Installation,
        model: Model,
        profile: Profile,
        role: Role,
        spot: Placement,
        more: tuple[str, ...],
    ) -> Server:
        assert pair.leases is not None
        leased = pair.leases.for_instance(profile.placeholders(role))
        config = fill(profile.kv_transfer_config(role, engine.device), leased)
        instance = profile.instance(role)
        env = {name: str(value) for name, value in fill(instance.env, leased).items()}
        env |= python_path(profile)
        command = [
            *self._command(engine, model, spot),
            *("--kv-transfer-config", json.dumps(config)),
            *(str(argument) for argument in fill(instance.args, leased)),
            *more,
        ]
        server = self._server(
            pair.key, role, model, command, {**spot.env, **env}, [pair.leases.root]
        )
        pair.ports[server] = leased
        return server

    def _command(self, engine: Installation, model: Model, spot: Placement) -> list[str]:
        return [
            *engine.launch_prefix(model.source),
            *("--served-model-name", model.name, "--dtype", model.dtype, "--seed", "0"),
            *("--max-model-len", str(MAX_MODEL_LEN)),
            *("--max-num-batched-tokens", str(TOKEN_BUDGET)),
            *("--enforce-eager", "--enable-prompt-tokens-details"),
            *("--structured-outputs-config", json.dumps(STRUCTURED_OUTPUTS)),
            *TOOL_CALLS,
            *spot.args,
        ]

    def _server(
        self,
        key: Key,
        role: ServerRole,
        model: Model,
        command: list[str],
        env: dict[str, str],
        shared: list[Path],
    ) -> Server:
        port = self._ports.lease()
        plan = ServerPlan(
            what=f"{role} server",
            command=[*command, "--host", "127.0.0.1", "--port", str(port.port)],
            env={**_ENV, **self._offline(model), **env},
            log=self._log(key, role),
            shared_dirs=shared,
            role=role,
            model=model.name,
            port=port,
        )
        return Server(plan)

    def _offline(self, model: Model) -> dict[str, str]:
        return {"HF_HUB_OFFLINE": "1"} if Path(model.source).is_dir() else {}

    def _log(self, key: Key, what: str) -> Path:
        self._started += 1
        worker = os.environ.get("PYTEST_XDIST_WORKER", "")
        parts = [key.connector or "reference", key.model, key.shape.label, what]
        name = "-".join(filter(None, parts)).replace("/", "_")
        return self._options.report / "logs" / f"{worker}{self._started:02d}-{name}.log"

    def _start(self, planned: list[Deployment]) -> None:
        servers = [server for deployment in planned for server in deployment.servers]
        began = self._clock.timing().wall_s
        try:
            for daemon in [daemon for deployment in planned for daemon in deployment.daemons]:
                daemon.start()
                daemon.wait_ready()
            for server in servers:
                self._clock.server_starts += 1
                server.start()
            wait_ready(servers, self._options.start_timeout_s)
            if self._engines.default.device == "cpu":
                calm([server.pid for server in servers])
        except BaseException as problem:
            self._note(planned, None, str(problem) or type(problem).__name__)
            raise
        self._note(planned, self._clock.timing().wall_s - began, None)

    def _note(
        self, planned: list[Deployment], startup_s: float | None, problem: str | None
    ) -> None:
        for deployment in planned:
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
