"""Legs that are sent at once, to a decode that does not wait for what prefill still computes."""

from __future__ import annotations

import pytest
import yaml

from conformance.profile_file import PROFILE_FOLDER
from conformance.scripted.suite import Suite
from conformance.verdict import Verdict

pytestmark = pytest.mark.timeout(300)

HASTY = """
from conformance.handoffs.base import Handoff

class Hasty(Handoff):
    "Says of a store that decode may be asked before prefill has answered."

    may_go_at_once = True
"""


@pytest.fixture
def suite(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    """Beside it a profile of the store of examples, with that handoff."""
    made = Suite(tmp_path_factory.mktemp("legs"))
    document = yaml.safe_load((PROFILE_FOLDER / "example.yaml").read_text())
    own = {"name": "hasty", "handoff": "hasty_handoff:Hasty", "python_path": ["."]}
    (made.root / "hasty.yaml").write_text(yaml.safe_dump({**document, **own}))
    (made.root / "hasty_handoff.py").write_text(HASTY)
    return made


def test_a_decode_that_does_not_wait_recomputes(suite: Suite) -> None:
    checks = ("--check", "legs/at-once", "--check", "transfer/completion")
    own = ("--profile", str(suite.root / "hasty.yaml"))
    ended = suite.run("--connector", "hasty", *own, *checks, fault="prefill:slow:200")
    assert ended.cell("hasty", "transfer/completion").verdict is Verdict.PASS, ended.out
    cell = ended.cell("hasty", "legs/at-once")
    assert cell.verdict is Verdict.DEGRADED
    assert "external=0 of" in cell.message
    assert suite.left_behind() == []
