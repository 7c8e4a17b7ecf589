"""Deployments: which servers a group of checks needs, started once and kept while needed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from conformance.damage import Damage
from conformance.placeholders import Leased
from conformance.serving.daemon import DaemonProcess
from conformance.serving.leases import Leases
from conformance.serving.served import ServerRole
from conformance.serving.server import Server

RANKS = "--tensor-parallel-size"


@dataclass(frozen=True)
class Extra:
    """What a server is started with beyond the ordinary: arguments and environment."""

    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Shape:
    """How many instances of each side, and what servers are started with beyond the ordinary.

    ``label`` is short and for people, such as ``2P2D``; the ordinary pair has none. ``args`` and
    ``env`` are for every server, the reference included; the other arguments are for one role.
    ``kv_config`` goes over ``--kv-transfer-config`` of both sides. ``daemons``: whether those of
    the profile run. ``start_limit_s``: in place of the run's own. ``stranger``: the model that the
    last prefill instance serves, where that is not the pair's.
    """

    label: str = ""
    prefills: int = 1
    decodes: int = 1
    prefill_args: tuple[str, ...] = ()
    decode_args: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    reference_args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    kv_config: tuple[tuple[str, str], ...] = ()
    daemons: bool = True
    start_limit_s: float | None = None
    stranger: str = ""

    @property
    def is_trial(self) -> bool:
        """Whether it only shows how a server starts: without a decode side there is no pair."""
        return not self.decodes

    def ranks(self, role: ServerRole) -> int:
        """Tensor-parallel ranks of a server of a role."""
        args = self.extra(role).args
        at = args.index(RANKS) + 1 if RANKS in args else 0
        return int(args[at]) if at else 1

    def extra(self, role: ServerRole) -> Extra:
        """What the servers of a role get."""
        own = {
            "prefill": self.prefill_args,
            "decode": self.decode_args,
            "reference": self.reference_args,
        }
        return Extra((*self.args, *own.get(role, ())), self.env)


PAIR = Shape()
# One server, to hear what the engine says of a connector that does not claim this platform.
TRIAL = Shape("trial", prefills=1, decodes=0)


# Shapes whose reference is started alike share it, whatever they are called.
ReferenceKey = tuple[str, Extra]


@dataclass(frozen=True)
class Key:
    """Identity of a deployment; the connector ``None`` means the reference."""

    connector: str | None
    model: str
    shape: Shape = PAIR

    @property
    def label(self) -> str:
        """For people, such as ``nixl × tiny-llama × 2P2D``."""
        parts = [self.connector or "reference", self.model, self.shape.label]
        return " × ".join(filter(None, parts))

    @property
    def reference(self) -> ReferenceKey:
        """The reference that this deployment is compared with."""
        return self.model, self.shape.extra("reference")


@dataclass
class Deployment:
    """Running servers, the daemons they need, and what they share."""

    key: Key
    prefills: list[Server] = field(default_factory=list)
    decodes: list[Server] = field(default_factory=list)
    references: list[Server] = field(default_factory=list)
    daemons: list[DaemonProcess] = field(default_factory=list)
    leases: Leases | None = None
    ports: dict[Server, Leased] = field(default_factory=dict)
    damage: Damage | None = None
    damage_of_child: dict[str, Damage | None] = field(default_factory=dict)

    @property
    def servers(self) -> list[Server]:
        """Every server, in the order of starting."""
        return [*self.prefills, *self.decodes, *self.references]

    @property
    def folders(self) -> dict[str, Path]:
        """The folders that its instances share, by name."""
        return self.leases.folders if self.leases else {}

    @property
    def alive(self) -> bool:
        """Whether every process runs."""
        return all(process.alive for process in (*self.servers, *self.daemons))

    def stop(self) -> None:
        """End every server, then every daemon, and remove what they shared."""
        for group in (self.servers, self.daemons):
            for process in group:
                process.begin_stop()
            for process in group:
                process.stop()
        if self.leases:
            self.leases.release()

    def ports_of(self, prefill: Server, decode: Server) -> dict[str, int]:
        """The leased ports that a router between these two would have to know, by name."""
        both = {**self.ports.get(decode, {}), **self.ports.get(prefill, {})}
        return {name: int(value) for (kind, name), value in both.items() if kind == "port"}
