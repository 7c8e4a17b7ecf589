"""Whole runs by one's own profile: daemons and files, refusals, a connector that recomputes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from sample_profiles import DOCUMENT, both

from conformance.evidence import Rung
from conformance.scripted.refusals import LAST_WORDS
from conformance.scripted.suite import Ended, Running, Suite
from conformance.verdict import Verdict

pytestmark = pytest.mark.timeout(500)

MASTER = {
    "name": "master",
    "command": [
        *("${python}", "-m", "conformance.scripted.store"),
        *("--port=${port:master}", "--folder=${dir:kv}"),
    ],
    "ready_port": "master",
    "ready_path": "/ready",
}
STORE: dict[str, Any] = {
    "name": "store",
    "connector": "StoreConnector",
    "daemons": [MASTER],
    "files": {"store.json": {"master": "${port:master}", "note": "of ${dir:kv}"}},
    **both(env={"FAKE_STORE_CONFIG": "${file:store.json}"}),
    "movement": [
        {"side": "prefill", "files": "kv"},
        {"side": "decode", "metric": "vllm:nixl_bytes_transferred_sum"},
    ],
    "causality": {"method": "damage_files", "dir": "kv"},
}
NO_MASTER = {**MASTER, "command": ["${python}", "-c", "raise OSError('no ${port:master} here')"]}
CLEAR, UNCLEAR = "OffloadingConnector", "SimpleCPUOffloadConnector"
PROFILES: dict[str, dict[str, Any]] = {
    "daemon": STORE,
    "dead-daemon": {**STORE, "daemons": [NO_MASTER]},
    "clear": {"connector": CLEAR, "platforms": ["cuda"]},
    "unclear": {"connector": UNCLEAR, "platforms": ["cuda"]},
    "contradicted": {"connector": CLEAR, "platforms": ["cpu"]},
    "recomputes": {**STORE, "title": "Recomputing"},
}
START, BASIC = "start/ready", "transfer/completion"
FEW = ("--check", START, "--check", BASIC, "--check", "length/2B+1")


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    made = Suite(tmp_path_factory.mktemp("profiles"))
    yield made
    assert made.left_behind() == []
    assert list((made.root / "tmp").glob("kvc-*")) == []


@pytest.fixture(scope="module")
def runs(suite: Suite) -> dict[str, Running]:
    """Every run of this file, started."""
    started = {}
    for name, changes in PROFILES.items():
        file = suite.root / f"{name}.yaml"
        file.write_text(yaml.safe_dump({**DOCUMENT, **changes, "name": name}))
        fault = "decode:recompute" if name == "recomputes" else ""
        started[name] = suite.start("--profile", str(file), *FEW, fault=fault, name=f"{name}-run")
    return started


def test_a_connector_with_a_daemon_and_a_file_climbs_to_the_control(
    runs: dict[str, Running],
) -> None:
    ended = runs["daemon"].wait()
    assert set(ended.verdicts().values()) == {Verdict.PASS}, ended.out
    for check in (BASIC, "length/2B+1"):
        (proof,) = ended.cell("daemon", check).evidence.proofs
        assert proof.reached is Rung.CONTROL
    steps = {step.name: step for step in proof.steps}
    assert steps[Rung.CAUSALITY].figures["damaged_pieces"] == 1
    assert ended.code == 0


def test_a_daemon_is_started_first_and_has_a_log(runs: dict[str, Running]) -> None:
    ended = runs["daemon"].wait()
    names = sorted(path.name for path in (ended.folder / "logs").iterdir())
    assert len(names) == 4
    assert names[0].startswith("01-daemon-")
    assert names[0].endswith("-master.log")


def test_a_daemon_that_dies_is_not_held_against_the_connector(runs: dict[str, Running]) -> None:
    ended = runs["dead-daemon"].wait()
    assert set(ended.verdicts().values()) == {Verdict.ERROR}, ended.out
    message = ended.cell("dead-daemon", START).message
    assert "the daemon master died while starting: OSError: no " in message
    assert "${port" not in message
    assert ended.report.timing.server_starts == 0
    assert ended.code == 3


def test_a_clear_refusal_is_unsupported_in_every_cell_and_quoted(runs: dict[str, Running]) -> None:
    ended = runs["clear"].wait()
    assert len(ended.verdicts()) == 3
    for name, verdict in ended.verdicts().items():
        assert verdict == Verdict.UNSUPPORTED, name
        message = ended.cell("clear", name.removeprefix("clear/")).message
        assert message == f"refused on cpu: {quoted(CLEAR)!r}"
    assert ended.code == 4, "nothing ran"


def test_a_connector_that_claims_nothing_here_is_asked_with_one_server(
    runs: dict[str, Running],
) -> None:
    for name in ("clear", "unclear"):
        report = runs[name].wait().report
        assert report.timing.server_starts == 1
        assert [(start.role, bool(start.problem)) for start in report.servers] == [
            ("prefill", True)
        ]


@pytest.mark.parametrize(
    ("name", "connector", "words"),
    [
        ("unclear", UNCLEAR, "cannot start on cpu and does not say why: it dies with"),
        ("contradicted", CLEAR, "the profile claims cpu, and the engine refuses it there"),
    ],
)
def test_a_refusal_that_is_a_defect_fails_at_start_and_nowhere_else(
    runs: dict[str, Running], name: str, connector: str, words: str
) -> None:
    ended = runs[name].wait()
    assert outcome(ended, name) == [Verdict.FAIL, Verdict.NOT_RUN, Verdict.NOT_RUN]
    first, second = ended.cell(name, START), ended.cell(name, BASIC)
    assert words in first.message
    assert quoted(connector) in first.message
    assert f"raise {LAST_WORDS[connector][0]}" in (first.log_excerpt or "")
    assert f"see start/ready: {quoted(connector)}" in second.message
    assert ended.code == 1


def test_a_connector_that_recomputes_is_asked_for_nothing_more(runs: dict[str, Running]) -> None:
    ended = runs["recomputes"].wait()
    assert outcome(ended, "recomputes") == [Verdict.PASS, Verdict.DEGRADED, Verdict.NOT_RUN]
    message = ended.cell("recomputes", "length/2B+1").message
    assert f"not tried, since {BASIC} is degraded" in message
    assert "--keep-going" in message
    assert ended.code == 1


def quoted(connector: str) -> str:
    """The engine's last words as it logged them."""
    return ": ".join(LAST_WORDS[connector])


def outcome(ended: Ended, name: str) -> list[Verdict]:
    """The verdicts of the three checks."""
    return [ended.cell(name, check).verdict for check in (START, BASIC, "length/2B+1")]
