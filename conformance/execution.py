"""A run of checks, for whichever command asks for one."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
import typer

from conformance.attachment import ONE_PROCESS, WITH_SECRETS
from conformance.errors import ReportError, UsageError
from conformance.expectations_scope import ruling_of
from conformance.options import RunOptions
from conformance.registry import CHECKS_FOLDER, plan
from conformance.report import load
from conformance.site import site_of
from conformance.verdict import ExitCode


def try_checks(options: RunOptions, *, workers: int, quiet: bool, fail_fast: bool = False) -> int:
    """The same run that pytest would do, with our own console; then the matrix.

    The exit code of the run. ``fail_fast``: it ends with the first cell that is red. Raises
    :class:`SuiteError` before anything is started.
    """
    if options.attachment and workers:
        raise UsageError(ONE_PROCESS)
    site = site_of(options)
    options = site.options
    ruling_of(options, plan(options, site.engines.default.device), site.engines, date.today())
    _must_be_writable(options.report)
    arguments = _pytest_arguments(options, workers=workers, quiet=quiet)
    code = pytest.main([*arguments, *(("-x",) if fail_fast else ())])
    if code in (ExitCode.CONFORMANT, ExitCode.NOT_CONFORMANT, ExitCode.HARNESS):
        _render(options.report)
    return int(code)


def _pytest_arguments(options: RunOptions, *, workers: int, quiet: bool) -> list[str]:
    return [
        *(str(CHECKS_FOLDER), "-p", "conformance.plugin"),
        *("-p", "no:cacheprovider", "-p", "no:terminal"),
        *("-c", str(CHECKS_FOLDER / "pytest.ini"), "--rootdir", str(CHECKS_FOLDER)),
        *("--kv-options", options.model_dump_json(context=WITH_SECRETS)),
        *("--kv-console", "quiet" if quiet else "lines"),
        *(f"--junitxml={options.report / 'junit.xml'}", "-o", "junit_family=xunit1"),
        *(("-n", str(workers), "--dist", "loadgroup") if workers else ()),
    ]


def _render(folder: Path) -> None:
    from matrix import render

    try:
        found = load(folder)
        if not found.connectors:
            return  # a run of controls alone draws no matrix
        for path in render([found], folder):
            typer.echo(path)
    except ReportError as problem:
        typer.secho(f"kv-conformance: no matrix: {problem}", err=True, fg="red")


def _must_be_writable(folder: Path) -> None:
    probe = folder / ".writable"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"0" * 65536)
        probe.unlink()
    except OSError as problem:
        raise UsageError(
            f"--report {folder} cannot be written: {problem.strerror}; free some space or give "
            "another folder"
        ) from problem
