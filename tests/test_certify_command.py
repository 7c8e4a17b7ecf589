"""``certify``: what it asks a run for, and what it makes of the report; no server is started."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from sample_certificates import SET, judged, run_of, spoilt
from sample_profiles import DOCUMENT, both, profile
from typer.testing import CliRunner

from conformance import certify_command, execution
from conformance.certify_command import current_set, options_for, repeat_line
from conformance.cli import app
from conformance.errors import UsageError
from conformance.options import RunOptions
from conformance.profile_file import load_profile
from conformance.registry import plan
from conformance.report import Report, save
from conformance.requirement_sets import catalogue, frozen, required_cells
from conformance.verdict import ExitCode, Verdict


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A profile in a file."""
    made = tmp_path / "mine.yaml"
    made.write_text(yaml.safe_dump(DOCUMENT))
    return made


@dataclass
class Run:
    """What stands in for a run: its report and its exit code."""

    report: Report | None = None
    code: ExitCode = ExitCode.CONFORMANT

    def __call__(self, options: RunOptions, *, workers: int, quiet: bool, fail_fast: bool) -> int:
        if self.report:
            save(self.report, options.report)
        return int(self.code)


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> Run:
    run = Run()
    monkeypatch.setattr(execution, "try_checks", run)
    monkeypatch.setattr(certify_command, "packages_of", lambda options, subject: {"torch": "2"})
    return run


def certify(file: Path, out: Path) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["certify", "--profile", str(file), "--out", str(out)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def test_a_certified_connector(file: Path, tmp_path: Path, ended: Run) -> None:
    ended.report = run_of(load_profile(file))
    code, output = certify(file, tmp_path / "out")
    assert code == 0
    assert "certified: MyConnector meets core-" in output
    assert (tmp_path / "out" / "certificate.json").is_file()
    assert (tmp_path / "out" / "certificate.md").is_file()


@pytest.mark.parametrize("code", [ExitCode.CONFORMANT, ExitCode.NOT_CONFORMANT, ExitCode.HARNESS])
def test_a_refused_connector_exits_1_whatever_the_run_said(
    file: Path, tmp_path: Path, ended: Run, code: ExitCode
) -> None:
    ended.report, ended.code = spoilt("length/B", verdict=Verdict.NOT_RUN, message="no time"), code
    code_seen, output = certify(file, tmp_path / "out")
    assert code_seen == 1
    assert "length/B: not_run: no time" in output
    assert not (tmp_path / "out" / "certificate.json").exists()
    assert (tmp_path / "out" / "no-certificate.json").is_file()


@pytest.mark.parametrize("code", [ExitCode.INTERRUPTED, ExitCode.USAGE])
def test_a_run_that_was_broken_off_leaves_no_certificate(
    file: Path, tmp_path: Path, ended: Run, code: ExitCode
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "certificate.json").write_text("of before")
    ended.report, ended.code = run_of(load_profile(file)), code
    assert certify(file, out)[0] == code
    assert not list(out.glob("*certificate*"))


def test_a_run_asks_for_exactly_the_required_cells_and_the_controls(file: Path) -> None:
    subject = load_profile(file)
    cells = plan(options_for(subject, SET, report=file.parent), "cpu")
    mine = [cell.id for cell in cells if cell.profile.name == subject.name]
    assert sorted(mine) == sorted(required_cells(SET, subject))
    others = {cell.profile.name: cell.profile.control for cell in cells} | {subject.name: False}
    assert [name for name, control in others.items() if control] == ["decode-bench"]
    assert cells[-1].profile.name == "decode-bench"


def test_the_line_that_repeats_it(file: Path) -> None:
    options = options_for(load_profile(file), SET, seed=7, model="some/model")
    line = repeat_line(options)
    assert line == f"kv-conformance certify --profile {file} --model some/model --seed 7"
    own = options_for(load_profile(file), SET, server_python=["/env/python", "mine=/own/python"])
    told = "--server-python /env/python --server-python mine=/own/python --seed 0"
    assert repeat_line(own).endswith(told)
    patient = options_for(load_profile(file), SET, answer_limit_s=300)
    assert repeat_line(patient).endswith("--answer-limit 300 --seed 0")


@pytest.mark.parametrize(
    ("changes", "told"),
    [({"control": True}, "control: a connector"), ({"name": "decode-bench"}, "is a control's")],
)
def test_a_control_cannot_be_certified(changes: dict[str, object], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        options_for(profile(**changes, **both()), SET)


def test_checks_that_are_no_longer_those_of_the_set_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fewer = frozen(3, catalogue()[1:])
    monkeypatch.setattr(certify_command, "latest", lambda: fewer)
    with pytest.raises(UsageError, match=r"not those of core-3 \(new: .*requirement_sets"):
        current_set()


def test_the_exit_code_follows_the_certificate() -> None:
    assert certify_command.tell(judged(run_of(profile())), []) == 0
    assert certify_command.tell(judged(spoilt("length/B", verdict=Verdict.FAIL)), []) == 1
