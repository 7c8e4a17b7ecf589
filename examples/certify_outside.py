"""Certifies the example from outside the repository, as somebody who only installed the suite.

``python examples/certify_outside.py --python .tox/cpu/bin/python`` copies the example into a
temporary folder, installs the copy into that interpreter's environment, goes there, and tries
the contract and a certificate, then the broken variant, to which a certificate must be refused.
Nothing may have been written outside the folder. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGE, MODULE = "block_store_connector", "kvc_block_store"
# Of the environments, and of tools that may be used meanwhile.
NOT_OURS = {".git", ".tox", ".venv-ci", "__pycache__"}
NOT_OURS |= {".ruff_cache", ".mypy_cache", ".pytest_cache", ".hypothesis"}


class Outside:
    """A folder of its own, and commands that run there with nothing of the repository."""

    def __init__(self, python: Path, folder: Path) -> None:
        self.python, self.folder = python, folder
        self.tool = python.parent / "kv-conformance"
        for name in ("home", "tmp"):
            (folder / name).mkdir()
        shutil.copytree(REPOSITORY / "examples" / PACKAGE, folder / PACKAGE)

    def run(self, *command: object) -> int:
        """One command; its exit code."""
        return self._call(command, self._env())

    def pip(self, *command: object) -> int:
        """As the person who owns the environment, with their sources of packages."""
        pip = (self.python, "-m", "pip", "--quiet", "--disable-pip-version-check")
        return self._call((*pip, *command), dict(os.environ))

    def _call(self, command: tuple[object, ...], env: dict[str, str]) -> int:
        print("$", *command, flush=True)
        words = [str(part) for part in command]
        return subprocess.run(words, cwd=self.folder, env=env, check=False).returncode

    def profile(self, *which: str) -> Path:
        """Where the installed package keeps a profile."""
        command = [str(self.python), "-m", MODULE, *which]
        done = subprocess.run(
            command, cwd=self.folder, env=self._env(), capture_output=True, text=True, check=True
        )
        found = Path(done.stdout.strip())
        must(not found.is_relative_to(REPOSITORY / "examples"), f"{found} is the repository's own")
        return found

    def _env(self) -> dict[str, str]:
        """Homes and temporary files lie inside; the model cache stays, since it costs minutes."""
        cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "kv-conformance"
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        env.setdefault("KV_CONFORMANCE_CACHE", str(cache))
        return env | {
            "HOME": str(self.folder / "home"),
            "XDG_CACHE_HOME": str(self.folder / "home" / ".cache"),
            "TMPDIR": str(self.folder / "tmp"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }


def main() -> int:
    """Exit code 0, or 1 with the first thing that is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="with vLLM")
    parser.add_argument("--keep", type=Path, help="copy the certificates here")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kvc-outside-") as made:
        # The path of the link, not what it points to: that would be outside the environment.
        there = Outside(Path(os.path.abspath(given.python)), Path(made))
        must(there.pip("install", "--no-deps", f"./{PACKAGE}") == 0, "the example installs")
        try:
            try_all(there)
        finally:
            if given.keep:
                keep(there.folder, given.keep)
            there.pip("uninstall", "--yes", "kvc-block-store")
    print("certified from outside the repository, and the broken variant refused")
    return 0


def try_all(there: Outside) -> None:
    """The right connector, then the wrong one, then what they left."""
    began = time.time()
    right, broken = there.profile(), there.profile("broken")
    must(
        there.run(there.tool, "contract", "--profile", right) == 0,
        "the right one keeps the contract",
    )
    must(there.run(there.tool, "certify", "--profile", right, "--out", "right") == 0, "certified")
    look_at_certificate(there.folder / "right" / "certificate.json")
    code = there.run(there.tool, "certify", "--profile", broken, "--out", "broken", "-x")
    must(code == 1, f"the broken variant must not be certified: exit code {code}")
    look_at_refusal(there.folder / "broken")
    written = written_since(began)
    must(not written, f"written outside {there.folder}: {', '.join(map(str, written[:5]))}")
    left = [path.name for path in (there.folder / "tmp").glob("kvc-*")]
    must(not left, f"left in TMPDIR: {', '.join(left)}")


def look_at_certificate(file: Path) -> None:
    """It is about the class, with evidence in every cell."""
    found = read(file)
    must(found["certified"] is True and not found["refusals"], "a certificate without refusals")
    must(found["subject"]["connector_class"] == "BlockStoreConnector", "the class that was tried")
    must(MODULE in found["packages"], "the connector's own version among the packages")
    must({cell["verdict"] for cell in found["cells"]} == {"pass"}, "every cell a pass")
    must(any(control["found_out"] for control in found["controls"]), "a control found out")


def look_at_refusal(folder: Path) -> None:
    """It was refused for what is broken in it, and for nothing that the machine did."""
    must(not (folder / "certificate.json").exists(), "no certificate for the broken variant")
    found = read(folder / "no-certificate.json")
    cells = {cell["check"]: cell for cell in found["cells"]}
    must(cells["start/ready"]["verdict"] == "pass", "the broken variant starts")
    first = cells["transfer/completion"]
    must(first["verdict"] == "fail", f"transfer/completion should fail, but is {first['verdict']}")
    must(first["ladder"]["accounting"] == "held", "its counters are perfect")
    must(first["ladder"]["parity"] == "broken", "its answer is wrong")


def written_since(began: float) -> list[Path]:
    """Files of the repository that changed."""
    found = []
    for root, folders, files in os.walk(REPOSITORY):
        folders[:] = [name for name in folders if name not in NOT_OURS]
        paths = [Path(root, name) for name in files]
        found += [path for path in paths if path.stat(follow_symlinks=False).st_mtime > began]
    return found


def keep(folder: Path, where: Path) -> None:
    """Copy the certificates out of the temporary folder."""
    where.mkdir(parents=True, exist_ok=True)
    for file in folder.glob("*/*certificate.*"):
        shutil.copy(file, where / f"{file.parent.name}-{file.name}")


def read(file: Path) -> dict[str, Any]:
    """A JSON document that should be there."""
    must(file.is_file(), f"{file} should have been written")
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def must(holds: bool, what: str) -> None:
    """Ends the script where something does not hold."""
    if not holds:
        raise SystemExit(f"certify_outside: does not hold: {what}")


if __name__ == "__main__":
    sys.exit(main())
