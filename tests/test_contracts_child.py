"""A contract that hangs, crashes or cannot be imported is told apart from one that holds."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from conformance.contract_child import check_interpreter, run_contracts
from conformance.contract_results import ClauseResult
from conformance.errors import EnvironmentProblem, UsageError

HEAD = """
import os, threading, time
from conformance.contracts.clause import Contract

class TestSubject(Contract):
    cannot = {"c_declared": "it has no store"}
    untried = {"c_untried": "no peer here"}
"""


def clause(name: str, body: str) -> str:
    return f'\n    def test_{name}(self):\n        """Says {name}."""\n        {body}\n'


def tried(folder: Path, *clauses: str, limit_s: float = 30.0) -> dict[str, ClauseResult]:
    file = folder / "subject.py"
    file.write_text(HEAD + "".join(clauses))
    results = run_contracts(sys.executable, str(file), clause_limit_s=limit_s)
    return {result.clause: result for result in results}


def test_verdicts_and_messages(tmp_path: Path) -> None:
    found = tried(
        tmp_path,
        clause("a_holds", "assert True"),
        clause("b_broken", "assert not [7], 'seven is left'"),
        clause("c_declared", "raise SystemExit"),
        clause("c_untried", "raise SystemExit"),
    )
    told = {name: (result.verdict, result.message) for name, result in found.items()}
    assert told == {
        "a_holds": ("pass", ""),
        "b_broken": ("fail", "seven is left"),
        "c_declared": ("unsupported", "it has no store"),
        "c_untried": ("not_run", "no peer here"),
    }
    assert found["b_broken"].requirement == "Says b_broken."


@pytest.mark.parametrize(
    ("body", "end"),
    [
        ("os.kill(os.getpid(), 11)", "crashed: the process ended with signal 11"),
        ("threading.Event().wait(60)", "hung in wait (threading.py:"),
    ],
    ids=["crash", "hang"],
)
def test_a_process_that_ends_early_fails_its_clause_and_names_the_rest(
    tmp_path: Path, body: str, end: str
) -> None:
    found = tried(
        tmp_path,
        clause("a_holds", "assert True"),
        clause("b_ends", body),
        clause("c_declared", "pass"),
        clause("c_untried", "pass"),
        limit_s=1.0,
    )
    assert [found[name].verdict for name in sorted(found)] == ["pass", "fail", "error", "error"]
    assert found["b_ends"].message.startswith(end)
    assert found["c_untried"].message.startswith("never tried")


def test_a_process_that_does_not_end_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("conformance.contract_child.EXIT_S", 0.5)
    lingers = "import threading; threading.Thread(target=threading.Event().wait).start()"
    started = time.monotonic()
    found = tried(
        tmp_path, clause("a", lingers), clause("c_declared", "pass"), clause("c_untried", "pass")
    )
    assert [found[name].verdict for name in sorted(found)] == ["pass", "unsupported", "not_run"]
    assert time.monotonic() - started < 30


def test_a_killed_command_takes_its_contract_along(tmp_path: Path) -> None:
    file, pid = tmp_path / "subject.py", tmp_path / "pid"
    body = f"open({str(pid)!r}, 'w').write(f'{{os.getpid()}}\\n'); time.sleep(60)"
    file.write_text(HEAD.split("    cannot")[0] + clause("a", body))
    source = "import sys; from conformance.contract_child import *; run_contracts(*sys.argv[1:])"
    command = [sys.executable, "-c", source, sys.executable, str(file)]
    with subprocess.Popen(command) as parent:
        wait_until(lambda: pid.exists() and pid.read_text().endswith("\n"))
        parent.kill()
    child = int(pid.read_text())
    wait_until(lambda: not psutil.pid_exists(child) or ended(child))


def ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait_until(done: Callable[[], bool], within_s: float = 30.0) -> None:
    end = time.monotonic() + within_s
    while not done():
        assert time.monotonic() < end, f"not so within {within_s} s"
        time.sleep(0.05)


def test_a_declared_clause_must_exist(tmp_path: Path) -> None:
    found = tried(tmp_path, clause("a_holds", "assert True"))
    assert found["a_holds"].verdict == "error"
    assert "no such clause: c_declared, c_untried" in found["a_holds"].message


def test_a_contract_that_cannot_be_imported_is_bad_usage(tmp_path: Path) -> None:
    file = tmp_path / "subject.py"
    file.write_text("import no_such_module_anywhere")
    with pytest.raises(UsageError, match="No module named 'no_such_module_anywhere'"):
        run_contracts(sys.executable, str(file))


def test_a_file_without_a_contract_ran_nothing(tmp_path: Path) -> None:
    file = tmp_path / "subject.py"
    file.write_text("")
    with pytest.raises(EnvironmentProblem, match="no clause was tried"):
        run_contracts(sys.executable, str(file))


def test_only_the_contracts_come_from_the_suite(tmp_path: Path) -> None:
    """An engine's environment has none of the packages that the suite needs."""
    body = "import conformance.contracts.pipe, conformance.contracts.lookup_buffer, sys"
    loaded = "assert not {'pydantic', 'yaml', 'torch', 'conformance.errors'} & {*sys.modules}"
    found = tried(
        tmp_path,
        clause("a_holds", f"{body}; {loaded}"),
        clause("c_declared", "pass"),
        clause("c_untried", "pass"),
    )
    assert found["a_holds"].verdict == "pass", found["a_holds"].message


def test_an_interpreter_without_the_packages_is_refused() -> None:
    with pytest.raises(UsageError, match="has no no_such_package"):
        check_interpreter(sys.executable, "pytest", "no_such_package")
    with pytest.raises(UsageError, match="cannot be run"):
        check_interpreter("/nowhere/python", "pytest")
