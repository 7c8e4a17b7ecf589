"""Runs on pairs that somebody else started: what is proven, what is left out, what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance import metrics
from conformance.evidence import Outcome, Rung, Step
from conformance.oracle import ALONE
from conformance.scripted.pairs import Place, place
from conformance.scripted.suite import Ended, Running, Suite
from conformance.verdict import Verdict

pytestmark = pytest.mark.timeout(500)

KEY = "hush-hush-1234"
COMPLETION = ("--check", "transfer/completion")
FEW = (*COMPLETION, "--check", "length/B", "--check", "length/T+B+7")
IDS = ("--check", "token-ids/same-answer/unstreamed")
STREAM = ("--check", "streaming/answer/chat")


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    made = Suite(tmp_path_factory.mktemp("attach"))
    yield made
    assert made.left_behind() == []


@pytest.fixture(scope="module")
def here(suite: Suite) -> Iterator[Place]:
    with place(suite.root / "store") as made:
        yield made


class Runs:
    """Every run of this file, started; each on a pair of its own."""

    def __init__(self, suite: Suite, here: Place) -> None:
        self._suite = suite
        nixl = ("--connector", "nixl")
        keyed = here.pair(api_key=KEY)
        header = ("--header", f"X-Tenant: {KEY}")
        no_engine = ("--server-python", str(suite.root / "no" / "python"))
        self.healthy = self._on(keyed, "--api-key", KEY, *header, *nixl, *no_engine, *FEW, *IDS)
        self.url_of_healthy = keyed[0]
        self._stored = here.pair(connector="example")
        self.example = self.on_what_is_stored()
        self.broken = self._on(here.pair("decode:recompute"), *nixl, *COMPLETION)
        self.made_up = self._on(here.pair("decode:make_up"), *nixl, *COMPLETION)
        routed = here.pair()
        router = here.router(*routed)
        self.routed = self._on(
            routed, "--router-url", f"{router}/v1", *nixl, *COMPLETION, *IDS, *STREAM
        )
        reference = here.server("reference", connector="")
        told = ("--reference-url", reference, "--seed", "3")
        self.told = self._on(here.pair("decode:wrong_kv"), *told, *nixl, *COMPLETION)
        foreign = here.pair("decode:foreign@transfer/completion")
        self.foreign = self._on(foreign, *nixl, *COMPLETION)
        deadly = here.pair("decode:die_on_length:16")
        self.deadly = self._on(deadly, *nixl, "--check", "length/B", "--check", "length/B+1")
        quiet = ("--feature", "lifecycle", "--level", "extended")
        self.spared = self._on(here.pair(), *nixl, *quiet)
        writer, reader = here.pair(connector="example")
        self.swapped = self._on((reader, writer), "--connector", "example", *COMPLETION)

    def on_what_is_stored(self) -> Running:
        """Always with the same prompts, which the store knows from the second time on."""
        return self._on(self._stored, "--connector", "example", *COMPLETION, "--seed", "5")

    def _on(self, pair: tuple[str, str], *arguments: str) -> Running:
        number = len(list(self._suite.root.glob("*.out")))
        folder = self._suite.root / f"report-{number}"
        urls = ("--prefill-url", pair[0], "--decode-url", f"{pair[1]}/")
        return self._suite.command("run", *urls, *arguments, "--report", str(folder), folder=folder)


@pytest.fixture(scope="module")
def runs(suite: Suite, here: Place) -> Runs:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "SETTLE_POLL_S", 0.005)
        return Runs(suite, here)


def step(ended: Ended, connector: str, check: str, rung: Rung) -> Step:
    (proof,) = ended.cell(connector, check).evidence.proofs
    return next(step for step in proof.steps if step.name is rung)


def test_a_running_pair_is_proven_with_decode_as_its_oracle(runs: Runs) -> None:
    ended = runs.healthy.wait()
    assert ended.code == 0, ended.out + ended.err
    verdicts = ended.verdicts()
    assert "nixl/length/T+B+7" in verdicts, "its token budget is what /server_info says"
    assert set(verdicts.values()) == {Verdict.PASS}
    parity = step(ended, "nixl", "transfer/completion", Rung.PARITY)
    assert parity.figures["oracle"] == ALONE
    assert ALONE in parity.summary
    assert step(ended, "nixl", "transfer/completion", Rung.CAUSALITY).outcome is Outcome.HELD


def test_somebody_elses_servers_are_not_paused_or_emptied_unasked(runs: Runs) -> None:
    ended = runs.spared.wait()
    cells = ended.report.connectors[0].cells
    assert {cell.check.split("/")[1] for cell in cells} >= {"reset", "pause", "reset-between"}
    assert {cell.verdict for cell in cells} == {Verdict.NOT_RUN}
    assert "ask for it by name: --check" in ended.cell("nixl", "lifecycle/reset/both").message
    assert ended.code == 4


def test_nothing_is_started_and_nothing_is_made_up_of_the_engine(runs: Runs) -> None:
    report = runs.healthy.wait().report
    assert report.servers == []
    assert report.timing.server_starts == 0
    assert report.engine is not None
    assert (report.engine.distribution, report.engine.version) == ("vllm", "0.32.0")
    assert report.engine.device == "device not known"
    assert report.contradictions == []
    assert runs.url_of_healthy in report.host.platform


def test_a_key_is_in_no_file(runs: Runs) -> None:
    ended = runs.healthy.wait()
    kept = [path for path in ended.folder.rglob("*") if path.is_file()]
    assert len(kept) >= 4
    assert [path for path in kept if KEY in path.read_text(errors="replace")] == []
    assert KEY not in ended.out + ended.err
    replay = ended.cell("nixl", "length/B").replay
    assert f"--prefill-url {runs.url_of_healthy}" in replay
    assert "--header 'X-Tenant: …'" in replay
    assert "--seed" not in replay


def test_what_needs_the_folder_is_left_out_with_its_reason(runs: Runs) -> None:
    ended = runs.example.wait()
    assert ended.code == 0, ended.out + ended.err
    for rung in (Rung.MOVEMENT, Rung.CAUSALITY):
        left_out = step(ended, "example", "transfer/completion", rung)
        assert left_out.outcome is Outcome.NOT_APPLICABLE
        assert "is not the suite's to touch" in left_out.summary
    assert "is not the suite's to touch" in ended.cell("example", "transfer/completion").message


def test_what_a_store_answers_needs_a_reference(runs: Runs) -> None:
    runs.example.wait()
    cell = runs.on_what_is_stored().wait().cell("example", "transfer/completion")
    assert cell.verdict is Verdict.NOT_RUN
    assert "with --reference-url" in cell.message


def test_a_pair_that_recomputes_is_degraded(runs: Runs) -> None:
    ended = runs.broken.wait()
    assert ended.cell("nixl", "transfer/completion").verdict is Verdict.DEGRADED
    assert ended.code == 1


def test_decode_that_makes_kv_up_is_no_oracle(runs: Runs) -> None:
    ended = runs.made_up.wait()
    cell = ended.cell("nixl", "transfer/completion")
    assert cell.verdict is Verdict.ERROR
    assert "--reference-url" in cell.message
    assert ended.code == 3


def test_a_reference_that_runs_already_finds_wrong_kv(runs: Runs) -> None:
    ended = runs.told.wait()
    cell = ended.cell("nixl", "transfer/completion")
    assert cell.verdict is Verdict.FAIL
    assert "oracle" not in step(ended, "nixl", "transfer/completion", Rung.PARITY).figures
    assert ended.report.seed == 3


def test_through_a_router(runs: Runs) -> None:
    ended = runs.routed.wait()
    assert ended.code == 0, ended.out + ended.err
    assert ended.verdicts() == {
        "nixl/transfer/completion": Verdict.PASS,
        "nixl/streaming/answer/chat": Verdict.PASS,
        "nixl/token-ids/same-answer/unstreamed": Verdict.NOT_RUN,
    }
    assert (
        "leave --router-url out" in ended.cell("nixl", "token-ids/same-answer/unstreamed").message
    )
    assert step(ended, "nixl", "transfer/completion", Rung.ACCOUNTING).outcome is Outcome.HELD
    causal = step(ended, "nixl", "transfer/completion", Rung.CAUSALITY)
    assert causal.outcome is Outcome.NOT_APPLICABLE
    assert "the router makes both legs" in causal.summary


def test_other_traffic_says_what_to_do(runs: Runs) -> None:
    ended = runs.foreign.wait()
    cell = ended.cell("nixl", "transfer/completion")
    assert cell.verdict is Verdict.ERROR
    assert "take it out of its load balancer" in cell.message


def test_a_server_that_ends_is_not_started_again(runs: Runs) -> None:
    ended = runs.deadly.wait()
    first, second = (ended.cell("nixl", f"length/{length}") for length in ("B", "B+1"))
    assert "stopped answering" in first.message
    assert second.verdict is Verdict.ERROR
    assert "cannot start it again" in second.message


def test_swapped_urls_are_said(runs: Runs) -> None:
    ended = runs.swapped.wait()
    assert "are swapped" in ended.cell("example", "transfer/completion").message
    assert ended.code == 3


def test_what_cannot_be_tried_is_one_line_and_an_exit_code(suite: Suite, here: Place) -> None:
    urls = ("--prefill-url", here.pair()[0], "--decode-url", here.server("decode", api_key=KEY))
    locked = suite.command("run", *urls, "--connector", "nixl")
    workers = suite.command("run", *urls, "--connector", "nixl", "-n", "2")
    for running, words in ((locked, "HTTP 401"), (workers, "leave -n / --workers out")):
        ended = running.wait()
        assert ended.code == 2
        assert words in ended.err
        assert len(ended.err.strip().splitlines()) == 1


def test_the_store_is_the_servers_own(suite: Suite, runs: Runs) -> None:
    runs.example.wait()
    assert list(Path(suite.root / "store").iterdir())
