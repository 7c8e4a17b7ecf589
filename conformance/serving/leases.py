"""What a deployment's placeholders become: ports, folders, files, programs."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.errors import EnvironmentProblem
from conformance.placeholders import Leased, fill, names_in
from conformance.profile import Profile
from conformance.serving.ports import Lease, PortRange


@dataclass
class Leases:
    """Everything leased for one deployment of a profile.

    Daemons, files and both sides share folders, and ports that more than one of them names; a
    port that one side alone names is each instance's own, so that there can be several of it.
    """

    profile: Profile
    python: str
    root: Path
    ports: PortRange
    folders: dict[str, Path] = field(default_factory=dict)
    held: list[Lease] = field(default_factory=list)
    shared: Leased = field(default_factory=dict)

    def prepare(self) -> None:
        """Lease what is shared, make the folders, write the files."""
        common = self.profile.placeholders()
        both = self.profile.placeholders("prefill") & self.profile.placeholders("decode")
        either = self.profile.placeholders("prefill") | self.profile.placeholders("decode")
        wanted = common | both | {(kind, name) for kind, name in either if kind != "port"}
        for kind, name in sorted(wanted - {(k, n) for k, n in wanted if k == "file"}):
            self.shared[kind, name] = self._lease(kind, name)
        for name, content in self.profile.files.items():
            self.shared["file", name] = self._write(name, content)

    def for_instance(self, needed: set[tuple[str, str]]) -> Leased:
        """The shared leases, and an instance's own ports."""
        own = {key: self._lease(*key) for key in sorted(needed - self.shared.keys())}
        return {**self.shared, **own}

    def covers(self, value: Any) -> bool:
        """Whether everything a config value needs is shared, and nothing an instance's own."""
        return names_in(value) <= self.shared.keys()

    def release(self) -> None:
        """Give the ports back and remove the folders and files."""
        for lease in self.held:
            lease.release()
        shutil.rmtree(self.root, ignore_errors=True)

    def _lease(self, kind: str, name: str) -> str:
        if kind == "port":
            lease = self.ports.lease()
            self.held.append(lease)
            return str(lease.port)
        if kind == "dir":
            self.folders[name] = self.root / name
            self.folders[name].mkdir()
            return str(self.folders[name])
        return self.python if kind == "python" else program(name, self.python)

    def _write(self, name: str, content: dict[str, Any] | str) -> str:
        for key in names_in(content) - self.shared.keys():
            self.shared[key] = self._lease(*key)
        filled = fill(content, self.shared)
        path = self.root / name
        path.write_text(filled if isinstance(filled, str) else json.dumps(filled, indent=1))
        return str(path)


def program(name: str, python: str) -> str:
    """A program beside an interpreter, or on the search path. Raises EnvironmentProblem."""
    beside = Path(python).parent / name
    found = str(beside) if beside.is_file() else shutil.which(name)
    if found:
        return found
    raise EnvironmentProblem(
        f"program {name!r} is neither beside {python} nor on the search path: install the "
        "package that brings it into that environment"
    )


def missing_program(profile: Profile, python: str) -> str | None:
    """What a profile's daemons and files name and nobody installed, with the fix."""
    for kind, name in sorted(profile.placeholders()):
        try:
            if kind == "bin":
                program(name, python)
        except EnvironmentProblem as problem:
            return f"{profile.title}: {problem}"
    return None
