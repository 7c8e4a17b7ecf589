"""From a shape to the servers and daemons that it needs, put together and not yet started."""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path

from conformance.models import Model, obtain
from conformance.options import RunOptions
from conformance.placeholders import fill
from conformance.profile import Profile, Role
from conformance.report import Gpu
from conformance.serving.command import command, environment
from conformance.serving.daemon import DaemonProcess
from conformance.serving.damaging import damage_for, python_path
from conformance.serving.deployment import PAIR, Deployment, Extra, Key, Shape
from conformance.serving.devices import Placement, place
from conformance.serving.engine import Engines
from conformance.serving.leases import Leases
from conformance.serving.ports import PortRange
from conformance.serving.process import ProcessPlan
from conformance.serving.served import ServerRole
from conformance.serving.server import Server, ServerPlan

# In the arguments of a shape: the folder of a model, such as an adapter.
MODEL = re.compile(r"\$\{model:([a-zA-Z0-9._-]+)\}")


class Assembly:
    """Makes the deployments of one run, with ports, folders and log files of their own."""

    def __init__(self, options: RunOptions, engines: Engines, gpus: list[Gpu]) -> None:
        self._logs = options.report / "logs"
        self._engines = engines
        self._gpus = gpus
        self._ports = PortRange.parse(options.port_range)
        self._logged = 0

    def pair(self, model: Model, profile: Profile, shape: Shape) -> Deployment:
        """The instances of both sides, and their daemons. Nothing stays leased if it fails."""
        made = Deployment(Key(profile.name, model.name, shape))
        try:
            self._lease(made, profile)
            self._add_daemons(made, profile)
            self._add_instances(made, model, profile)
        except BaseException:
            made.stop()
            raise
        return made

    def reference(self, model: Model, shape: Shape) -> Deployment:
        """One server without a connector; named after the shape if it is not the ordinary one."""
        ordinary = shape.extra("reference") == Extra()
        made = Deployment(Key(None, model.name, PAIR if ordinary else shape))
        spot = self._spots(shape)[-1]
        whole = command(self._engines.default, model, spot)
        made.references.append(
            self._server(made, "reference", model, whole, environment(model, spot))
        )
        return made

    def _spots(self, shape: Shape) -> list[Placement]:
        """For every instance, and for the reference last, whether it starts now or runs already."""
        ranks = [
            *[shape.ranks("prefill")] * shape.prefills,
            *[shape.ranks("decode")] * shape.decodes,
            shape.ranks("reference"),
        ]
        return place(self._engines.default.device, self._gpus, ranks, os.cpu_count() or 1)

    def _lease(self, pair: Deployment, profile: Profile) -> None:
        python = self._engines.of(profile).python
        root = Path(tempfile.mkdtemp(prefix="kvc-shared-"))
        pair.leases = Leases(profile, python, root, self._ports)
        pair.leases.prepare()
        pair.damage = damage_for(profile, pair.leases)
        pair.damage_of_child = {part.name: damage_for(part, pair.leases) for part in profile.parts}

    def _add_daemons(self, pair: Deployment, profile: Profile) -> None:
        assert pair.leases is not None
        shared = pair.leases.shared
        for daemon in profile.daemons if pair.key.shape.daemons else ():
            plan = ProcessPlan(
                f"daemon {daemon.name}",
                [str(part) for part in fill(daemon.command, shared)],
                {k: str(v) for k, v in fill(daemon.env, shared).items()},
                self._log(pair.key, daemon.name),
                [pair.leases.root],
            )
            port = int(shared["port", daemon.ready_port])
            pair.daemons.append(DaemonProcess(plan, port, daemon.ready_path, daemon.start_limit_s))

    def _add_instances(self, pair: Deployment, model: Model, profile: Profile) -> None:
        shape = pair.key.shape
        spots = iter(self._spots(shape))
        on_prefill = [model] * shape.prefills
        if shape.stranger:
            on_prefill[-1] = obtain(shape.stranger, self._engines.default)
        sides: tuple[tuple[Role, list[Model], list[Server]], ...] = (
            ("prefill", on_prefill, pair.prefills),
            ("decode", [model] * shape.decodes, pair.decodes),
        )
        for role, models, servers in sides:
            for served in models:
                servers.append(self._instance(pair, served, profile, role, next(spots)))

    def _instance(
        self, pair: Deployment, model: Model, profile: Profile, role: Role, spot: Placement
    ) -> Server:
        assert pair.leases is not None
        engine, instance = self._engines.of(profile), profile.instance(role)
        leased = pair.leases.for_instance(profile.placeholders(role))
        config = fill(profile.kv_transfer_config(role, engine.device), leased)
        config |= dict(pair.key.shape.kv_config)
        whole = [
            *command(engine, model, spot),
            *("--kv-transfer-config", json.dumps(config)),
            *(str(argument) for argument in fill(instance.args, leased)),
        ]
        env = {name: str(value) for name, value in fill(instance.env, leased).items()}
        env = {**environment(model, spot), **env, **python_path(profile)}
        server = self._server(pair, role, model, whole, env)
        pair.ports[server] = leased
        return server

    def _server(
        self,
        of: Deployment,
        role: ServerRole,
        model: Model,
        command: list[str],
        env: dict[str, str],
    ) -> Server:
        extra, port = of.key.shape.extra(role), self._ports.lease()
        address = ("--host", "127.0.0.1", "--port", str(port.port))
        plan = ServerPlan(
            what=f"{role} server",
            command=[*command, *self._filled(extra.args), *address],
            env={**env, **dict(extra.env)},
            log=self._log(of.key, role),
            shared_dirs=[of.leases.root] if of.leases else [],
            role=role,
            model=model.name,
            port=port,
        )
        return Server(plan)

    def _filled(self, args: tuple[str, ...]) -> list[str]:
        """With the folders of the models that a shape names, built if need be."""
        engine = self._engines.default
        return [MODEL.sub(lambda found: obtain(found[1], engine).source, part) for part in args]

    def _log(self, key: Key, what: str) -> Path:
        self._logged += 1
        worker = os.environ.get("PYTEST_XDIST_WORKER", "")
        parts = [key.connector or "reference", key.model, key.shape.label, what]
        name = "-".join(filter(None, parts)).replace("/", "_")
        return self._logs / f"{worker}{self._logged:02d}-{name}.log"
