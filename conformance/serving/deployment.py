"""Deployments: which servers a group of checks needs, started once and kept while needed."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from conformance.clock import RunClock
from conformance.errors import ServerStartError
from conformance.models import Model, obtain
from conformance.options import RunOptions
from conformance.profile import Instance, Profile, fill
from conformance.report import Gpu, ServerStart
from conformance.serving.devices import Placement, place
from conformance.serving.engine import Installation
from conformance.serving.ports import Lease, PortRange
from conformance.serving.server import Role, Server, ServerPlan, wait_ready
from conformance.serving.spinners import calm

MAX_MODEL_LEN = 2048
# Small, so that a prompt of a few blocks already needs more than one scheduler step.
TOKEN_BUDGET = 512
# JSON allows any whitespace between tokens, and a model with random weights never stops at it.
STRUCTURED_OUTPUTS = {"backend": "xgrammar", "disable_any_whitespace": True}
SERVERS_AT_ONCE = 3
# A server that dies at start is tried once more: another process may have taken its port.
START_ATTEMPTS = 2

_ENV = {
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_HOST_IP": "127.0.0.1",
    # Stores keyed by vLLM's block hashes need both processes to hash alike (LMCache#1139).
    "PYTHONHASHSEED": "0",
}


@dataclass(frozen=True)
class Key:
    """Identity of a deployment; the connector ``None`` means the reference."""

    connector: str | None
    model: str

    @property
    def label(self) -> str:
        """For people, such as ``nixl × tiny-llama``."""
        return f"{self.connector or 'reference'} × {self.model}"


@dataclass
class Deployment:
    """Running servers by role, and what they share."""

    key: Key
    servers: dict[str, Server]
    folders: dict[str, Path] = field(default_factory=dict)
    leases: list[Lease] = field(default_factory=list)
    root: Path | None = None

    @property
    def alive(self) -> bool:
        """Whether every server's process runs."""
        return all(server.alive for server in self.servers.values())

    def stop(self) -> None:
        """End every server and remove what they shared."""
        for server in self.servers.values():
            server.begin_stop()
        for server in self.servers.values():
            server.stop()
        for lease in self.leases:
            lease.release()
        if self.root:
            shutil.rmtree(self.root, ignore_errors=True)


class Launcher:
    """Starts deployments of one run."""

    def __init__(
        self,
        options: RunOptions,
        engine: Installation,
        gpus: list[Gpu],
        clock: RunClock,
        on_start: Callable[[ServerStart], None],
    ) -> None:
        self._options = options
        self._engine = engine
        self._gpus = gpus
        self._clock = clock
        self._on_start = on_start
        self._ports = PortRange.parse(options.port_range)
        self._started = 0

    def model(self, name: str) -> Model:
        """A model, built if need be; building counts as starting up."""
        with self._clock.span("startup"):
            return obtain(name, self._engine)

    def launch(
        self, model: Model, profile: Profile | None, *, and_reference: bool
    ) -> tuple[Deployment | None, Deployment | None]:
        """A pair and its reference, or one of them; all servers start at the same time.

        Raises :class:`ServerStartError`; nothing is left running then.
        """
        with self._clock.span("startup"):
            for attempt in range(1, START_ATTEMPTS + 1):
                planned = self._plan(model, profile, and_reference)
                try:
                    self._start(planned)
                    return planned.get("pair"), planned.get("reference")
                except ServerStartError as problem:
                    port_taken = "already in use" in (problem.root_cause or "").lower()
                    if attempt == START_ATTEMPTS or not port_taken:
                        raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _plan(
        self, model: Model, profile: Profile | None, and_reference: bool
    ) -> dict[str, Deployment]:
        cores = os.cpu_count() or 1
        places = iter(place(self._engine.device, self._gpus, SERVERS_AT_ONCE, cores))
        planned: dict[str, Deployment] = {}
        if profile:
            planned["pair"] = self._plan_pair(model, profile, [next(places), next(places)])
        if and_reference:
            spot = list(places)[-1]
            key = Key(None, model.name)
            server = self._server("reference", key, model, None, spot, [])
            planned["reference"] = Deployment(key, {"reference": server})
        return planned

    def _plan_pair(self, model: Model, profile: Profile, spots: list[Placement]) -> Deployment:
        key = Key(profile.name, model.name)
        root = Path(tempfile.mkdtemp(prefix="kvc-shared-"))
        deployment = Deployment(key, {}, root=root)
        filled: dict[tuple[str, str], str] = {}
        for kind, name in sorted(profile.placeholders()):
            if kind == "port":
                lease = self._ports.lease()
                deployment.leases.append(lease)
                filled[kind, name] = str(lease.port)
            else:
                deployment.folders[name] = root / name
                deployment.folders[name].mkdir()
                filled[kind, name] = str(deployment.folders[name])
        roles: tuple[Literal["prefill", "decode"], ...] = ("prefill", "decode")
        for role, spot in zip(roles, spots, strict=True):
            instance = _filled(profile.instance(role), filled)
            config = kv_transfer_config(profile, instance)
            server = self._server(role, key, model, (config, instance), spot, [root])
            deployment.servers[role] = server
        return deployment

    def _server(
        self,
        role: Role,
        key: Key,
        model: Model,
        connector: tuple[dict[str, object], Instance] | None,
        spot: Placement,
        shared: list[Path],
    ) -> Server:
        port = self._ports.lease()
        command = [
            *self._engine.launch_prefix(model.source),
            *("--host", "127.0.0.1", "--port", str(port.port)),
            *("--served-model-name", model.name, "--dtype", model.dtype, "--seed", "0"),
            *("--max-model-len", str(MAX_MODEL_LEN)),
            *("--max-num-batched-tokens", str(TOKEN_BUDGET)),
            *("--enforce-eager", "--enable-prompt-tokens-details"),
            *("--structured-outputs-config", json.dumps(STRUCTURED_OUTPUTS)),
            *spot.args,
        ]
        env = {**_ENV, **spot.env}
        if Path(model.source).is_dir():
            env["HF_HUB_OFFLINE"] = "1"
        if connector:
            config, instance = connector
            command += ["--kv-transfer-config", json.dumps(config), *instance.args]
            env |= instance.env
        self._started += 1
        worker = os.environ.get("PYTEST_XDIST_WORKER", "")
        name = f"{worker}{self._started:02d}-{key.connector or 'reference'}-{key.model}-{role}.log"
        log = self._options.report / "logs" / name.replace("/", "_")
        return Server(ServerPlan(role, model.name, command, env, port, log, shared))

    def _start(self, planned: dict[str, Deployment]) -> None:
        servers = [server for d in planned.values() for server in d.servers.values()]
        began = self._clock.timing().wall_s
        try:
            for server in servers:
                self._clock.server_starts += 1
                server.start()
            wait_ready(servers, self._options.start_timeout_s)
            if self._engine.device == "cpu":
                calm([server.pid for server in servers])
        except BaseException as problem:
            self._note(planned, None, str(problem) or type(problem).__name__)
            for deployment in planned.values():
                deployment.stop()
            raise
        self._note(planned, self._clock.timing().wall_s - began, None)

    def _note(
        self, planned: dict[str, Deployment], startup_s: float | None, problem: str | None
    ) -> None:
        for deployment in planned.values():
            for role, server in deployment.servers.items():
                self._on_start(
                    ServerStart(
                        deployment=deployment.key.label,
                        role=role,
                        model=deployment.key.model,
                        command=server.plan.command,
                        block_size=server.block_size or None,
                        startup_s=round(startup_s, 1) if startup_s is not None else None,
                        problem=problem,
                    )
                )


def kv_transfer_config(profile: Profile, instance: Instance) -> dict[str, object]:
    """What ``--kv-transfer-config`` is given for one side of a pair."""
    config: dict[str, object] = {
        "kv_connector": profile.connector,
        "kv_role": instance.kv_role,
        **instance.kv_config,
    }
    if profile.module_path:
        config["kv_connector_module_path"] = profile.module_path
    if instance.extra_config:
        config["kv_connector_extra_config"] = instance.extra_config
    return config


def _filled(instance: Instance, leases: dict[tuple[str, str], str]) -> Instance:
    env = {name: str(value) for name, value in fill(instance.env, leases).items()}
    args = tuple(str(value) for value in fill(instance.args, leases))
    return instance.model_copy(
        update={
            "extra_config": fill(instance.extra_config, leases),
            "kv_config": fill(instance.kv_config, leases),
            "env": env,
            "args": args,
        }
    )
