"""Whole runs on a healthy pair: verdicts, report, other files, and the same again with xdist."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator

import pytest

from conformance import metrics
from conformance.evidence import Outcome, Rung
from conformance.options import RunOptions
from conformance.registry import all_checks, plan
from conformance.report import Cell
from conformance.scripted.suite import Ended, Running, Suite, asking
from conformance.serving.deployment import PAIR
from conformance.verdict import Verdict

pytestmark = pytest.mark.timeout(500)

BOTH = ("--connector", "example", "--connector", "nixl")
# Other shapes take deployments of their own, and one shows how they go; some features have tests
# of their own.
ELSEWHERE = (
    *("sampling", "usage", "endpoints", "scheduler", "isolation", "lifecycle"),
    "architectures",
)
ORDINARY = tuple(
    found.id for found in all_checks() if found.shape == PAIR and found.feature not in ELSEWHERE
)
ALL = tuple(asking(ORDINARY))
FEW = ("--feature", "basic-transfer")
SOME = ("--feature", "basic-transfer", "--feature", "streaming")
MEASURES_TIME = ("transfer/in-time",)
PLANNED = plan(
    RunOptions(connectors=("example", "nixl"), real_model="none", checks=ORDINARY), "cpu"
)


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    made = Suite(tmp_path_factory.mktemp("healthy"))
    yield made
    assert made.left_behind() == []
    assert list((made.root / "tmp").glob("kvc-*")) == []


@pytest.fixture(scope="module")
def runs(suite: Suite) -> dict[str, Running]:
    """Every run of this file, started; this server counts fast."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "SETTLE_POLL_S", 0.005)
        return {
            "report": suite.start(*BOTH, *ALL),
            "again": suite.start("--connector", "nixl", *SOME, name="again"),
            "square": suite.start("--connector", "nixl", "--check", "topology/2P2D", name="square"),
            "spread": suite.start(*BOTH, *FEW, "--workers", "2", name="spread"),
        }


@pytest.fixture(scope="module")
def healthy(runs: dict[str, Running]) -> Ended:
    return runs["report"].wait()


def cells(run: Ended) -> list[Cell]:
    return [cell for column in run.report.connectors for cell in column.cells]


def test_every_cell_of_a_healthy_pair_passes(healthy: Ended) -> None:
    wrong = {c.check: c.message for c in cells(healthy) if c.verdict is not Verdict.PASS}
    assert wrong == {}
    assert healthy.code == 0, healthy.err
    assert len(cells(healthy)) == len(PLANNED)
    assert healthy.report.state == "finished"


def test_every_proof_climbs_to_the_control(healthy: Ended) -> None:
    for cell in cells(healthy):
        for proof in cell.evidence.proofs:
            assert proof.reached is Rung.CONTROL, (cell.check, proof)
            assert {step.name for step in proof.steps} == set(Rung)
    proven = [cell for cell in cells(healthy) if cell.evidence.proofs]
    assert len(proven) > 60
    assert all(cell.evidence.facts for cell in cells(healthy) if cell not in proven)


def test_only_what_promises_nothing_is_excused(healthy: Ended) -> None:
    excused = {
        (column.name, cell.check)
        for column in healthy.report.connectors
        for cell in column.cells
        for proof in cell.evidence.proofs
        for step in proof.steps
        if step.outcome is Outcome.NOT_APPLICABLE
    }
    short = {("example", f"length/{length}") for length in ("1", "2", "B-1", "B")}
    computed = {(connector, "token-ids/echo") for connector in ("example", "nixl")}
    assert excused == short | {("nixl", "length/1")} | computed


def test_swapped_params_make_decode_follow_the_donor(healthy: Ended) -> None:
    (proof,) = healthy.cell("nixl", "transfer/completion").evidence.proofs
    step = next(step for step in proof.steps if step.name is Rung.CAUSALITY)
    assert step.figures["follows_donor"] is True


def test_three_servers_are_started_for_the_first_pair_and_two_for_the_next(healthy: Ended) -> None:
    report = healthy.report
    assert report.timing.server_starts == len(report.servers) == 5
    assert [start.role for start in report.servers].count("reference") == 1
    assert all(start.block_size == 16 and start.startup_s for start in report.servers)


def test_the_timing_adds_up(healthy: Ended) -> None:
    t = healthy.report.timing
    assert t.wall_s == pytest.approx(t.startup_s + t.request_s + t.harness_s, abs=0.01)
    assert t.startup_s > 0
    assert t.request_s > 0
    assert t.wall_s <= healthy.report.duration_s + 5


def test_the_other_files_of_a_run(healthy: Ended) -> None:
    tree = ElementTree.parse(healthy.folder / "junit.xml")
    assert "NixlConnector (pull)" in (healthy.folder / "matrix.md").read_text()
    assert "<html" in (healthy.folder / "matrix.html").read_text()
    assert len(list(tree.iter("testcase"))) == len(PLANNED)
    assert not list(tree.iter("failure"))
    logs = sorted(path.name for path in (healthy.folder / "logs").iterdir())
    assert len(logs) == 5
    assert "exit 0: conformant" in healthy.out


def test_another_run_gives_the_same_cells(runs: dict[str, Running], healthy: Ended) -> None:
    again = runs["again"].wait()
    assert again.code == 0
    seen = {(c.deployment, c.check): c for c in cells(healthy)}
    assert len(cells(again)) == 8
    for cell in cells(again):
        before = seen[cell.deployment, cell.check]
        assert (cell.verdict, cell.evidence.proofs) == (before.verdict, before.evidence.proofs)
        if cell.check not in MEASURES_TIME:
            assert cell.evidence.facts == before.evidence.facts


def test_two_workers_give_one_report_with_the_same_verdicts(
    runs: dict[str, Running], healthy: Ended
) -> None:
    spread = runs["spread"].wait()
    assert spread.code == 0, spread.out + spread.err
    assert len(spread.verdicts()) == 8
    assert spread.verdicts().items() <= healthy.verdicts().items()
    # Each worker has a reference of its own.
    assert spread.report.timing.server_starts == len(spread.report.servers) == 6
    assert len(list((spread.folder / "logs").iterdir())) == 6
    assert (spread.folder / "matrix.md").exists()


def test_two_instances_of_each_side_serve_each_other(runs: dict[str, Running]) -> None:
    ended = runs["square"].wait()
    cell = ended.cell("nixl", "topology/2P2D")
    assert cell.verdict is Verdict.PASS, cell.message
    assert [start.role for start in ended.report.servers] == [
        *("prefill", "prefill", "decode", "decode", "reference")
    ]
    assert len(cell.evidence.proofs) == 4
    assert cell.deployment.endswith("× 2P2D")


def test_files_lie_where_they_were_asked_for(suite: Suite, runs: dict[str, Running]) -> None:
    for running in runs.values():
        running.wait()
    known = {"environment", "model", "tmp", "cache", "report", "again", "square", "spread"}
    assert {p.name for p in suite.root.iterdir() if p.suffix not in (".out", ".err")} <= known
