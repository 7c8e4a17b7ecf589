"""A run of a connector that declares its features unsupported: asked to start, and nothing more."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from sample_profiles import DOCUMENT

from conformance.scripted.refusals import LAST_WORDS
from conformance.scripted.suite import Ended, Suite
from conformance.verdict import Verdict

pytestmark = pytest.mark.timeout(500)

CONNECTOR = "SimpleCPUOffloadConnector"
NO = {"support": "no", "limit": "the cache is one process's own", "source": "manager.py (0.32.0)"}


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    suite = Suite(tmp_path_factory.mktemp("declared"))
    file = Path(suite.root / "own.yaml")
    own = {"name": "own", "connector": CONNECTOR, "platforms": ["cuda"], "packages": ["absent_one"]}
    features = {"basic-transfer": NO, "prompt-length": NO}
    file.write_text(yaml.safe_dump({**DOCUMENT, **own, "features": features}))
    checks = ("--check", "start/ready", "--check", "transfer/completion", "--check", "length/B")
    return suite.run("--profile", str(file), *checks)


def test_declared_cells_are_unsupported_with_the_source(ended: Ended) -> None:
    for check in ("transfer/completion", "length/B"):
        cell = ended.cell("own", check)
        assert cell.verdict is Verdict.UNSUPPORTED
        assert cell.message == f"declared unsupported: {NO['limit']} (source: {NO['source']})"


def test_start_still_tells_the_engines_own_words(ended: Ended) -> None:
    cell = ended.cell("own", "start/ready")
    assert cell.verdict is Verdict.FAIL
    assert LAST_WORDS[CONNECTOR][1] in cell.message
    assert ended.code == 1


def test_only_the_start_was_tried(ended: Ended) -> None:
    assert ended.report.timing.server_starts == 1
    assert [start.role for start in ended.report.servers] == ["prefill"]
