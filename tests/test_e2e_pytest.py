"""``pytest conformance``: the same run, whatever a project has configured for its tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.report import load
from conformance.scripted.process import environment
from conformance.scripted.suite import Suite
from conformance.verdict import Verdict

pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).parent.parent
HASTY = "[pytest]\ntimeout = 3\n"


def test_a_timeout_for_ordinary_tests_is_none_for_checks(tmp_path: Path) -> None:
    """Servers of three processes, and requests of a second each, take longer than that."""
    suite = Suite(tmp_path)
    (suite.root / "pytest.ini").write_text(HASTY)
    chosen = ("--connector", "nixl", "--check", "transfer/completion", "--real-model", "none")
    where = ("--server-python", suite.python, "--model", suite.model)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-c", suite.root / "pytest.ini"),
            *("-p", "conformance.plugin", ROOT / "conformance" / "checks"),
            *(*chosen, *where, "--report", suite.root / "report"),
        ],
        env={
            **{name: value for name, value in os.environ.items() if "PYTEST" not in name},
            **environment(suite.root, "slow:1000"),
        },
        cwd=suite.root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = load(suite.root / "report").connectors[0].cells
    assert (cell.check, cell.verdict) == ("transfer/completion", Verdict.PASS)
    assert cell.duration_s > 3
    assert suite.left_behind() == []
