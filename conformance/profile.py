"""Profiles: the typed model of what the suite must know of a connector.

``profile_file.py`` reads one from YAML; ``composition.py`` makes one of several.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.json_schema import SkipJsonSchema

from conformance.placeholders import names_in, unknown_in
from conformance.variants import Variant

Role = Literal["prefill", "decode"]
Platform = Literal["cpu", "cuda", "rocm"]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("*", mode="after")
    @classmethod
    def _known_placeholders(cls, value: Any) -> Any:
        unknown = unknown_in(value)
        if unknown:
            raise ValueError(
                f"placeholder {unknown!r} is unknown; write ${{port:name}} for a leased port, "
                "${dir:name} for a shared folder, ${file:name} for one of 'files', ${python} for "
                "the engine's interpreter, ${bin:name} for a program installed beside it"
            )
        return value


class Granularity(StrEnum):
    """How much of a prompt of n tokens a healthy transfer covers, with B the block size."""

    TOKEN = "token"  # all n
    ALL_BUT_LAST = "all_but_last"  # n-1
    BLOCK = "block"  # whole blocks below the last token: floor((n-1)/B)*B

    def promised(self, tokens: int, block_size: int) -> int:
        """Tokens of external KV that decode must be served for a cold prompt.

        The last prompt token's logits are always computed by decode itself, so a block-granular
        connector can serve no block that holds it (vLLM 0.32.0, ``Scheduler.schedule``). A
        prompt of one token is only that last token: NIXL moves its block, and the scheduler
        then sets the computed tokens to n-1 = 0 and counts the prompt as computed locally.
        """
        if self is Granularity.TOKEN:
            return tokens if tokens > 1 else 0
        if self is Granularity.ALL_BUT_LAST:
            return max(tokens - 1, 0)
        return max(tokens - 1, 0) // block_size * block_size


class Instance(_Model):
    """What one side of the pair is started with."""

    kv_role: Literal["kv_producer", "kv_consumer", "kv_both"]
    extra_config: dict[str, Any] = Field(default_factory=dict)
    kv_config: dict[str, Any] = Field(default_factory=dict)
    env: dict[str, str] = Field(default_factory=dict)
    args: tuple[str, ...] = ()


class Daemon(_Model):
    """A process that servers of this connector need: started before them, stopped after them.

    Ready once ``ready_port`` (the name of a ``${port:…}``) accepts connections, and, where
    ``ready_path`` is given, a GET of that path on it answers 200.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9-]*$")
    command: tuple[str, ...] = Field(min_length=1)
    env: dict[str, str] = Field(default_factory=dict)
    ready_port: str
    ready_path: str | None = None
    start_limit_s: float = Field(default=90, gt=0)


class Movement(_Model):
    """Where a connector's own record of moved bytes or operations is found.

    ``metric``: a Prometheus sample on ``side``, over the series that carry ``labels``;
    ``files``: bytes written under ``${dir:NAME}``. ``granularity``: of the child whose record it
    is, where that is not the profile's.
    """

    side: Role
    metric: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    files: str | None = None
    unit: str = "bytes"
    granularity: Granularity | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Movement:
        if (self.files is None) == (self.metric is None):
            raise ValueError("give exactly one of 'metric' and 'files'")
        return self


class Settle(_Model):
    """Prefill's answer does not imply that the KV can be read yet: what to wait for.

    ``metric`` on ``side`` counts finished stores; it is polled after the prefill leg until it
    has grown and is steady.
    """

    side: Role = "prefill"
    metric: str
    labels: dict[str, str] = Field(default_factory=dict)


class Causality(_Model):
    """How the suite makes decode see KV that is not this prompt's.

    ``swap_params``: the handoff of another prompt; ``damage_files``: the stored bytes under
    ``${dir:NAME}`` are permuted before decode reads them; ``damage_memory``: those in a
    ``segment`` of shared memory; ``damage_command``: by a ``command`` of the profile's
    (``conformance/damage/command.py``); ``none``: it cannot, and ``why``.
    """

    method: Literal["swap_params", "damage_files", "damage_memory", "damage_command", "none"]
    dir: str | None = None
    segment: str | None = None
    command: tuple[str, ...] = ()
    why: str | None = None

    @model_validator(mode="after")
    def _complete(self) -> Causality:
        if self.method == "damage_files" and not self.dir:
            raise ValueError("damage_files needs 'dir', the ${dir:…} that it damages")
        if self.method == "damage_memory" and not self.segment:
            raise ValueError("damage_memory needs 'segment', such as /dev/shm/name-${port:x}")
        if self.method == "damage_command" and not self.command:
            raise ValueError("damage_command needs 'command'")
        if self.method == "none" and not self.why:
            raise ValueError("method none needs 'why': a step left out has to say so")
        return self


class Shim(_Model):
    """A small subclass that lets a connector run where it does not as shipped.

    Cells won through it say so.
    """

    platform: Platform
    connector: str
    module_path: str
    why: str


class Declared(_Model):
    """What the connector's documentation says of one feature, and where it says so.

    What is declared unsupported is not tried, so a "no" needs its source.
    """

    support: Literal["yes", "no", "partly"]
    limit: str | None = None
    source: str | None = None

    @model_validator(mode="after")
    def _no_has_a_source(self) -> Declared:
        if self.support == "no" and not (self.source or "").strip():
            raise ValueError(
                "support \"no\" needs 'source', the page or file that says so: its checks are "
                "not tried, and a reader has to be able to look it up"
            )
        return self


class DeclaredVariant(Declared):
    """What it says of a kind of model or a mode of the engine.

    With "yes", a refusal contradicts it; of what is left out, the engine may refuse anything in
    clear words. ``granularity``: where less of a prompt can be transferred than ordinarily.
    """

    granularity: Granularity | None = None


class Capabilities(_Model):
    """What the connector's documentation promises of its class; what is left out is not claimed.

    ``hma``: runs with the hybrid KV cache manager; ``piecewise_cudagraph``: needs that mode with
    an empty extra config; ``load_errors``: reports the blocks that it could not load;
    ``reset_cache``: its store can be emptied; ``stats``, ``prom_metrics``: has its own.
    """

    hma: bool | None = None
    piecewise_cudagraph: bool | None = None
    load_errors: bool | None = None
    reset_cache: bool | None = None
    stats: bool | None = None
    prom_metrics: bool | None = None


_OF_CHILDREN = Causality(method="none", why="by each child's own method")


class Profile(_Model):
    """A connector as the suite knows it.

    ``tries``: features that are tried on it, where another profile already stands for the rest;
    empty means all. ``control``: the connector is broken on purpose or by design, is never a
    column, and a run must find it out. ``parts``: the children's profiles, filled in from
    ``children``.
    """

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    title: str
    connector: str
    module_path: str | None = None
    python_path: tuple[str, ...] = ()
    server_python: str | None = None
    summary: str
    control: bool = False
    children: tuple[str, ...] = ()
    handoff: str = "none"
    granularity: Granularity = Granularity.BLOCK
    prefill: Instance
    decode: Instance
    daemons: tuple[Daemon, ...] = ()
    files: dict[str, dict[str, Any] | str] = Field(default_factory=dict)
    movement: tuple[Movement, ...] = ()
    settle: Settle | None = None
    causality: Causality = Field(default=_OF_CHILDREN)
    tries: tuple[str, ...] = ()
    topologies: tuple[Literal["2P2D", "P64-D128", "P128-D64", "TP2-TP1"], ...] = ()
    shims: tuple[Shim, ...] = ()
    packages: tuple[str, ...] = ()
    platforms: tuple[Platform, ...]
    platforms_source: str | None = None
    real_model: bool = False
    features: dict[str, Declared] = Field(default_factory=dict)
    variants: dict[Variant, DeclaredVariant] = Field(default_factory=dict)
    capabilities: Capabilities = Field(default_factory=Capabilities)
    links: tuple[str, ...] = ()
    parts: SkipJsonSchema[tuple[Profile, ...]] = ()
    path: Path = Path()
    digest: str = ""

    @model_validator(mode="after")
    def _causality_or_children(self) -> Profile:
        if self.causality is _OF_CHILDREN and not (self.children or self.parts):
            raise ValueError("'causality' is missing: say how decode is made to see other KV")
        return self

    def in_variant(self, name: str) -> Profile:
        """Itself, with the granularity that it has with such a model or mode."""
        declared = {str(known): what for known, what in self.variants.items()}.get(name)
        if declared is None or declared.granularity is None:
            return self
        return self.model_copy(update={"granularity": declared.granularity})

    def python_folders(self) -> tuple[Path, ...]:
        """Folders that ``python_path`` names, relative ones beside the profile's file."""
        return tuple((self.path.parent / folder).resolve() for folder in self.python_path)

    def instance(self, role: Role) -> Instance:
        """The side of the pair that a role names."""
        return self.prefill if role == "prefill" else self.decode

    def shim_on(self, device: str) -> Shim | None:
        """The shim that stands in for the connector on a platform, if it needs one there."""
        return next((shim for shim in self.shims if shim.platform == device), None)

    def claims(self, device: str) -> bool:
        """Whether it should start on a platform, behind a shim or as shipped."""
        return device in self.platforms or bool(self.shims_on(device))

    def shims_on(self, device: str) -> list[Shim]:
        """Its own shim and its children's."""
        own = self.shim_on(device)
        return [
            *([own] if own else []),
            *(shim for part in self.parts for shim in part.shims_on(device)),
        ]

    def kv_transfer_config(self, role: Role, device: str) -> dict[str, Any]:
        """What ``--kv-transfer-config`` is given for one side, placeholders not yet filled."""
        instance, shim = self.instance(role), self.shim_on(device)
        config: dict[str, Any] = {
            "kv_connector": shim.connector if shim else self.connector,
            "kv_role": instance.kv_role,
            **instance.kv_config,
        }
        module = shim.module_path if shim else self.module_path
        extra = dict(instance.extra_config)
        if self.parts:
            extra["connectors"] = [part.kv_transfer_config(role, device) for part in self.parts]
        return (
            config
            | ({"kv_connector_module_path": module} if module else {})
            | ({"kv_connector_extra_config": extra} if extra else {})
        )

    def placeholders(self, role: Role | None = None) -> set[tuple[str, str]]:
        """Every ``(kind, name)`` that one side needs; with ``None`` what both sides share."""
        if role is None:
            around: list[Any] = [self.causality.segment, self.causality.command]
            around += [part for d in self.daemons for part in (d.command, d.env)]
            own = names_in(around) | names_in(self.files)
            return own.union(*(part.placeholders() for part in self.parts))
        instance = self.instance(role)
        return names_in([self.kv_transfer_config(role, ""), instance.env, instance.args])
