"""``kv-conformance selftest``: what it tries, what it writes and how it ends."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformance.cli import app
from conformance.errors import UsageError
from conformance.mutants import catalogue, selftest
from conformance.mutants.harness import FAULTS
from conformance.mutants.kill_matrix import KillMatrix
from conformance.mutants.trial import Trial, Wanted
from conformance.selftest_command import FAST, OVER
from conformance.verdict import Verdict

EVERYTHING = selftest.choose((), OVER, every_scripted=False)


def test_everything_is_tried_by_default() -> None:
    assert EVERYTHING.connectors == tuple(catalogue.names())
    assert EVERYTHING.scripted == tuple(fault.name for fault in FAULTS)
    assert {mutant.over for mutant in EVERYTHING.mutants()} == set(OVER)


def test_the_fast_ones_share_one_running_pair() -> None:
    chosen = selftest.choose(FAST, ("nixl", "scripted"), every_scripted=True)
    assert set(chosen.connectors) == set(FAST)
    assert len(chosen.scripted) == len(FAULTS)
    for name in FAST:
        fault = catalogue.fault_named(name)
        assert "nixl" in fault.over
        assert not fault.ends_servers
        assert not fault.constructed_as


def test_one_mutant_may_be_asked_for() -> None:
    chosen = selftest.choose(("load-zeros",), OVER, every_scripted=False)
    assert [(m.name, m.over) for m in chosen.mutants()] == [
        ("load-zeros", "example"),
        ("load-zeros", "nixl"),
    ]


def test_a_kind_without_servers_has_no_connectors() -> None:
    chosen = selftest.choose((), ("scripted",), every_scripted=False)
    assert chosen.connectors == ()
    assert chosen.scripted


def test_an_unknown_mutant_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"'zeros' is unknown\. Known: another-requests-kv"):
        selftest.choose(("zeros",), OVER, every_scripted=False)


def test_the_list_names_who_has_to_see_each() -> None:
    said = selftest.listed(EVERYTHING).splitlines()
    at = said.index("load-zeros (nixl): Every byte of KV that arrives is zero.")
    assert "transfer/completion" in said[at + 1]


def test_fast_chooses_by_itself() -> None:
    ended = CliRunner().invoke(app, ["selftest", "--fast", "--over", "nixl"])
    assert isinstance(ended.exception, UsageError)
    assert "leave --mutant and --over out" in str(ended.exception)


def test_a_matrix_begins_with_its_mutants_alone() -> None:
    made = begun()
    assert made.mutants
    assert made.trials == []


@pytest.mark.parametrize(("verdict", "code"), [(Verdict.FAIL, 0), (Verdict.PASS, 1)])
def test_what_was_seen_is_written_and_ends_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verdict: Verdict, code: int
) -> None:
    name = FAULTS[0].name

    def tried(_: object, say: object) -> None:
        seen = Trial(mutant=name, over="scripted", check="c", wanted=Wanted.RED, verdict=verdict)
        say(seen)  # type: ignore[operator]

    monkeypatch.setattr(selftest, "run_harness_faults", tried)
    ended = CliRunner().invoke(app, ["selftest", "--mutant", name, "--report", str(tmp_path)])
    assert ended.exit_code == code, ended.output
    assert f"{1 - code} of 1 mutants killed, 1 trials" in ended.output
    written = KillMatrix.model_validate_json((tmp_path / "selftest.json").read_text())
    assert written.state == "finished"
    assert (tmp_path / "kill-matrix.md").read_text().startswith("# Kill matrix")


def test_what_was_seen_before_ctrl_c_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tried(_: object, say: object) -> None:
        seen = Trial(
            mutant="x", over="scripted", check="c", wanted=Wanted.RED, verdict=Verdict.FAIL
        )
        say(seen)  # type: ignore[operator]
        raise KeyboardInterrupt

    monkeypatch.setattr(selftest, "run_harness_faults", tried)
    words = ["selftest", "--over", "scripted", "--report", str(tmp_path)]
    ended = CliRunner().invoke(app, words)
    assert ended.exit_code == 130
    written = KillMatrix.model_validate_json((tmp_path / "selftest.json").read_text())
    assert written.state == "interrupted"
    assert len(written.trials) == 1


def begun() -> KillMatrix:
    return selftest.begun(
        EVERYTHING, suite="kv-conformance 1", started=datetime(2026, 11, 30, tzinfo=UTC), whole=True
    )
