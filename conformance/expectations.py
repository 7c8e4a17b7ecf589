"""What is known to fail: the model of an expectations file, and which cells an entry is about.

``expectations_file.py`` reads one from YAML, ``expectations_ruling.py`` applies it to a run,
``expectations_outcome.py`` says what became of each entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.json_schema import SkipJsonSchema

from conformance.profile import Platform
from conformance.verdict import Verdict

UNFILLED = "TODO"


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Place(NamedTuple):
    """Where a cell stands: its connector, its check, and its id, which is the check's and a case.

    Such as ``Place("nixl", "length", "length/B+1")``.
    """

    connector: str
    check: str
    cell: str

    @property
    def name(self) -> str:
        """The cell's name in a report, as ``replay`` takes it."""
        return f"{self.connector}/{self.cell}"


@dataclass(frozen=True)
class Facts:
    """What a connector's servers run on.

    ``device``: ``cpu``, ``cuda`` or ``rocm``, or words where it is not known; ``versions`` by
    distribution, vLLM as ``vllm`` whatever its distribution is called.
    """

    device: str
    versions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, device: str, distribution: str, version: str, packages: Mapping[str, str]) -> Facts:
        """From an engine and the packages beside it."""
        every = {**packages, distribution: version, "vllm": version}
        return cls(device, {canonicalize_name(name): said for name, said in every.items()})

    @property
    def vllm(self) -> str:
        """The version of vLLM, or words."""
        return self.versions.get("vllm", "not known")


class When(_Model):
    """Where an entry holds: on one of these platforms, with packages of these versions.

    ``packages``: PEP 440 specifiers by distribution, such as ``vllm: "<0.33"``.
    """

    platforms: tuple[Platform, ...] = ()
    packages: dict[str, str] = Field(default_factory=dict)

    @field_validator("packages", mode="after")
    @classmethod
    def _specifiers(cls, value: dict[str, str]) -> dict[str, str]:
        for name, wanted in value.items():
            if not _is_specifier(wanted):
                raise ValueError(
                    f"{name}: {wanted!r} is no PEP 440 specifier; write one such as '<0.33', "
                    "'==0.32.*' or '>=1.5,<2'"
                )
        return value

    @model_validator(mode="after")
    def _says_something(self) -> When:
        if not self.platforms and not self.packages:
            raise ValueError("an empty condition; give 'platforms' or 'packages', or remove it")
        return self

    def unmet(self, facts: Facts) -> str | None:
        """Why it does not hold here; ``None`` where it does.

        What is not known here holds nowhere: an expectation excuses only where it was meant to.
        """
        if self.platforms and facts.device not in self.platforms:
            return f"only on {', '.join(self.platforms)}, and this is {facts.device}"
        for name, wanted in self.packages.items():
            said = facts.versions.get(canonicalize_name(name))
            if not _within(said, wanted):
                return f"only with {name}{wanted}, and here it is {said or 'not known'}"
        return None

    def words(self) -> str:
        """Such as ``on cpu, with vllm<0.33``."""
        parts = [f"on {' or '.join(self.platforms)}"] if self.platforms else []
        parts += [f"with {name}{wanted}" for name, wanted in self.packages.items()]
        return ", ".join(parts)


def _is_specifier(wanted: str) -> bool:
    """Whether it is one; an empty one, which every version meets, is none here."""
    try:
        return bool(SpecifierSet(wanted))
    except InvalidSpecifier:
        return False


def _within(said: str | None, wanted: str) -> bool:
    try:
        return said is not None and SpecifierSet(wanted).contains(Version(said), prereleases=True)
    except InvalidVersion:  # a build from source calls itself "dev", a bare module "importable"
        return False


class Entry(_Model):
    """One known failure.

    ``connector`` and ``check`` are patterns, the latter of a check or of one of its cells, as
    ``--check`` takes them. ``verdict``: how it fails. ``expires``: the last day on which the
    entry counts. ``flaky``: it fails at times, so a pass is let through too. ``line``: where the
    entry begins in its file, filled in by the loader.
    """

    connector: str = Field(min_length=1)
    check: str = Field(min_length=1)
    verdict: Literal[Verdict.FAIL, Verdict.DEGRADED]
    reason: str
    link: str | None = Field(default=None, pattern=r"^https?://\S+$")
    when: When | None = None
    expires: date
    flaky: bool = False
    line: SkipJsonSchema[int] = 0

    @field_validator("reason", mode="after")
    @classmethod
    def _words(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("empty; say in a sentence why it fails")
        return value.strip()

    @property
    def unfilled(self) -> bool:
        """Whether nobody has said yet why it fails."""
        return self.reason.split()[0].rstrip(":.,") == UNFILLED

    def covers(self, place: Place) -> bool:
        """Whether it is about a cell."""
        return fnmatchcase(place.connector, self.connector) and any(
            fnmatchcase(name, self.check) for name in (place.cell, place.check)
        )

    def covered(self, places: Iterable[Place]) -> list[Place]:
        """Those that it is about."""
        return [place for place in places if self.covers(place)]

    def unmet(self, facts: Facts) -> str | None:
        """Why it does not count here; ``None`` where it does."""
        return self.when.unmet(facts) if self.when else None

    def expired(self, today: date) -> bool:
        """Whether its last day is over."""
        return today > self.expires


class Expectations(_Model):
    """The document: a list of known failures."""

    expectations: tuple[Entry, ...]


@dataclass(frozen=True)
class ExpectationsFile:
    """A file that was read: its name as it was given, its digest, and its entries."""

    name: str
    digest: str
    entries: tuple[Entry, ...]

    def at(self, entry: Entry) -> str:
        """Such as ``known.yaml:12``."""
        return f"{self.name}:{entry.line}"


NO_FILE = ExpectationsFile("", "", ())
