"""Makes what a run needs of a machine: an interpreter with the scripted vLLM, and a model."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from conformance.scripted.sampling import EOS

HERE = Path(__file__).parent
SITE = HERE / "site"
SUITE = HERE.parent


def server_python(folder: Path, without: Sequence[str] = (), python: str = "") -> Path:
    """An executable to be given as ``--server-python``; ``without`` some of the packages.

    It sees the standard library, the scripted environment and the suite's own code, whatever
    else is installed here. ``python``: the interpreter behind it, if not this one.
    """
    site = folder / "site"
    site.mkdir(parents=True)
    for entry in SITE.iterdir():
        if entry.name not in without:
            (site / entry.name).symlink_to(entry)
    # Not the folder that it lies in: an installed suite lies beside everything else.
    (site / SUITE.name).symlink_to(SUITE)
    script = folder / "python"
    path = f"{site}${{PYTHONPATH:+:$PYTHONPATH}}"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{path}" exec "{python or sys.executable}" -S "$@"\n')
    script.chmod(0o755)
    return script


def model_folder(folder: Path) -> Path:
    """A folder to be given as ``--model``: the suite reads its end-of-sequence token alone."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"eos_token_id": EOS}))
    return folder
