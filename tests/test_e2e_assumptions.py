"""Whole runs on an engine of which one assumption does not hold: they end there, by name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.assumptions.assumption import all_assumptions
from conformance.scripted.pairs import place
from conformance.scripted.suite import Ended, Running, Suite
from conformance.verdict import Verdict

pytestmark = pytest.mark.timeout(500)

BOTH = ("--connector", "nixl", "--connector", "example")
CHECKS = ("--feature", "basic-transfer", "--feature", "prompt-length")
DEAF = "reference:drop_stop_token_ids@answers/stop"
NAMED = "vLLM 0.32.0 does not do what the suite takes for granted: answers/stop: finish_reason, "


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    made = Suite(tmp_path_factory.mktemp("assumptions"))
    yield made
    assert made.left_behind() == []
    assert list((made.root / "tmp").glob("kvc-*")) == []


@pytest.fixture(scope="module")
def runs(suite: Suite) -> dict[str, Running]:
    """Every run of this file, started."""
    few = ("--connector", "nixl", "--check", "length/B")
    return {
        "broken": suite.start(*BOTH, *CHECKS, fault=DEAF, name="broken"),
        "spread": suite.start(*BOTH, *CHECKS, "-n", "2", fault=DEAF, name="spread"),
        "healthy": suite.start(*BOTH, "--check", "length/B", "-n", "2", name="healthy"),
        "going": suite.start(*few, "--keep-going", fault=DEAF, name="going"),
    }


def assumptions(ended: Ended) -> dict[str, bool | None]:
    return {found.id: found.held for found in ended.report.assumptions}


@pytest.mark.parametrize("name", ["broken", "spread"])
def test_a_run_ends_where_an_assumption_does_not_hold(runs: dict[str, Running], name: str) -> None:
    ended = runs[name].wait()
    assert ended.code == 3, ended.out + ended.err
    assert [id for id, held in assumptions(ended).items() if held is False] == ["answers/stop"]
    cells = [cell for column in ended.report.connectors for cell in column.cells]
    errors = [cell for cell in cells if cell.verdict is Verdict.ERROR]
    assert len(errors) == (1 if name == "broken" else 2), "one for each process"
    assert all(cell.message.startswith(NAMED) for cell in errors)
    others = [cell for cell in cells if cell not in errors]
    assert len(others) > 20
    assert {cell.verdict for cell in others} == {Verdict.NOT_RUN}
    assert all(cell.message.startswith(f"not tried: {NAMED}") for cell in others)


def test_nothing_is_started_for_the_cells_after_it(runs: dict[str, Running]) -> None:
    ended = runs["broken"].wait()
    assert ended.report.timing.server_starts == 3
    assert ended.report.problems[-1].startswith(NAMED)


def test_forty_cells_say_it_in_a_few_lines(runs: dict[str, Running]) -> None:
    ended = runs["broken"].wait()
    assert "hold, answers/stop does not (vLLM 0.32.0)" in ended.out
    assert ended.out.count("does not do what the suite takes for granted") == 3
    told = [line for line in ended.out.splitlines() if "/28 " in line]
    assert len(told) == 1, "the cells after it are counted, and not told one by one"
    assert "exit 3: harness error" in ended.out


def test_every_worker_tries_them_and_the_report_has_them_once(runs: dict[str, Running]) -> None:
    ended = runs["healthy"].wait()
    assert ended.code == 0, ended.out + ended.err
    assert assumptions(ended) == {known.id: True for known in all_assumptions()}
    assert ended.out.count(f"assumptions: {len(all_assumptions())} hold (vLLM 0.32.0)") == 1
    assert ended.report.timing.server_starts == 6, "a reference for each worker"


def test_a_run_can_keep_going(runs: dict[str, Running]) -> None:
    ended = runs["going"].wait()
    assert ended.code == 3
    assert ended.cell("nixl", "length/B").verdict is Verdict.PASS
    assert assumptions(ended)["answers/stop"] is False
    assert ended.report.problems[-1].startswith(NAMED)


@pytest.fixture(scope="module")
def commands(suite: Suite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Ended]]:
    """The assumptions alone, on servers of their own and on one that runs already."""
    python = ("--server-python", str(suite.python), "--model", str(suite.model))
    with place(tmp_path_factory.mktemp("running")) as here:
        url = ("--url", here.server("reference", connector=""))
        prefill, decode = here.pair()
        deaf = here.server("reference", DEAF, connector="")
        pair = ("--prefill-url", prefill, "--decode-url", decode, "--reference-url", deaf)
        folder = suite.root / "pair"
        kept = ("--connector", "nixl", "--check", "length/B", "--report", str(folder))
        running = {
            "pair": suite.command("run", *pair, *kept, folder=folder),
            "holds": suite.command("assumptions", *python),
            "broken": suite.command("assumptions", *python, fault=DEAF),
            "attached": suite.command("assumptions", *url),
        }
        yield {name: started.wait() for name, started in running.items()}


def test_alone_they_all_hold(commands: dict[str, Ended]) -> None:
    ended = commands["holds"]
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    assert lines[0].startswith("starting a server of vLLM 0.32.0 without a connector")
    assert lines[1:-1] == [f"✓ {known.id}" for known in all_assumptions()]
    assert lines[-1].startswith(f"assumptions: {len(lines) - 2} hold (vLLM 0.32.0), ")


def test_alone_one_that_does_not_hold_is_spelled_out(commands: dict[str, Ended]) -> None:
    ended = commands["broken"]
    assert ended.code == 1
    at = ended.out.splitlines().index("✗ answers/stop")
    told = ended.out.splitlines()[at + 1 : at + 4]
    assert told[0].startswith("    taken for granted: One of ``stop_token_ids`` is the last token")
    assert told[1].startswith("    seen: finish_reason, stop_reason and last token=('length', ")
    assert "checks/test_stopping.py" in told[2]


def test_a_server_that_runs_already_is_neither_paused_nor_emptied(
    commands: dict[str, Ended],
) -> None:
    ended = commands["attached"]
    assert ended.code == 0, ended.out + ended.err
    assert "- developer/pause\n    not tried: it pauses the server" in ended.out
    assert "starting" not in ended.out


def test_on_a_pair_that_runs_already_its_reference_is_tried(commands: dict[str, Ended]) -> None:
    ended = commands["pair"]
    assert ended.code == 3
    assert ended.cell("nixl", "length/B").message.startswith(NAMED)
    spared = {id for id, held in assumptions(ended).items() if held is None}
    assert spared == {"counters/idle", "counters/busy", "developer/reset", "developer/pause"}


def test_no_server_is_no_verdict(suite: Suite) -> None:
    ended = suite.command("assumptions", "--url", "http://127.0.0.1:9").wait()
    assert ended.code == 3
    assert "nothing answers there" in ended.err
