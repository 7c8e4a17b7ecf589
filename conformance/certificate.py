"""``certificate.json``: that a connector meets a requirement set, cell by cell, or why it does not.

The model is a contract with other programs; its JSON Schema is committed as
``reports/certificate.schema.json``.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from conformance.evidence import Rung
from conformance.report import Engine, Host, Suite
from conformance.verdict import Verdict


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SetName(_Model):
    """The requirement set that was asked for: name, version, SHA-256 of what it requires."""

    id: str
    version: int
    digest: str


class Subject(_Model):
    """What the certificate is about. ``profile_digest``: of the profile's file."""

    name: str
    title: str
    connector_class: str
    module_path: str | None
    profile_path: str
    profile_digest: str
    links: list[str] = Field(default_factory=list)


class CertifiedCell(_Model):
    """One required cell. ``ladder``: the worst outcome of each step over all its proofs."""

    check: str
    feature: str
    level: str
    requirement: str
    verdict: Verdict
    message: str
    reached: Rung | None = None
    ladder: dict[Rung, str] = Field(default_factory=dict)
    replay: str = ""


class DeclaredException(_Model):
    """A feature that the profile declares unsupported, and the cells that are excused by it."""

    feature: str
    limit: str | None
    source: str
    cells: list[str]


class ControlSeen(_Model):
    """A connector that cannot transfer, and whether the run found it out."""

    name: str
    title: str
    found_out: bool | None
    verdict: Verdict
    message: str


class Refusal(_Model):
    """One reason against a certificate. ``cell`` is ``None`` where it is about the whole run."""

    cell: str | None
    reason: str


class Certificate(_Model):
    """``certified`` is true exactly where there is no refusal.

    ``not_asked``: checks of the set that do not apply to this connector; ``packages``: versions
    in the environment of its servers; ``run_id``: the report it was made from; ``command``:
    repeats it.
    """

    schema_version: Literal[1] = 1
    certified: bool
    refusals: list[Refusal]
    subject: Subject
    requirement_set: SetName
    date: datetime
    suite: Suite
    engine: Engine
    host: Host
    model: str
    seed: int
    packages: dict[str, str]
    controls: list[ControlSeen]
    cells: list[CertifiedCell]
    exceptions: list[DeclaredException]
    not_asked: list[str]
    run_id: str
    command: str

    def reasons(self) -> dict[str, list[str]]:
        """Each reason against a certificate once, with the cells it is about.

        What was tried and is wrong comes before what was not tried.
        """
        found: dict[str, list[str]] = {}
        for refusal in self.refusals:
            found.setdefault(refusal.reason, []).append(refusal.cell or "run")
        return dict(sorted(found.items(), key=lambda item: item[0].startswith(Verdict.NOT_RUN)))
