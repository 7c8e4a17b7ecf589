"""Builds recipes under the engine's Python: JSON in, digests of what was built out."""

import copy
import hashlib
import importlib
import json
import sys
from pathlib import Path

from conformance.data import fixtures


def main() -> None:
    asked = json.load(sys.stdin)
    sys.path.insert(0, str(fixtures() / "models"))
    into = Path(asked["into"])
    found = {}
    for name, recipe in asked["recipes"].items():
        other = {**recipe["parameters"], "seed": recipe["parameters"]["seed"] + 1}
        builds = (recipe["parameters"], recipe["parameters"], other)
        found[name] = [
            built(recipe["builder"], into / f"{name}-{number}", parameters)
            for number, parameters in enumerate(builds)
        ]
    print(json.dumps(found))


def built(builder: str, folder: Path, parameters: dict[str, object]) -> str:
    """Digest of all files that a builder makes."""
    folder.mkdir()
    importlib.import_module(Path(builder).stem).main(str(folder), copy.deepcopy(parameters))
    whole = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        whole.update(file.name.encode() + file.read_bytes())
        file.unlink()
    return whole.hexdigest()


if __name__ == "__main__":
    main()
