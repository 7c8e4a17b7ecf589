"""Controls: a run that cannot tell a faked transfer from a real one proves nothing."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.report import Control
from conformance.verdict import ExitCode


def controlled(code: ExitCode, controls: Iterable[Control]) -> ExitCode:
    """The exit code with the controls: one that was not found out is a fault of the suite.

    A control that could not be tried changes nothing; a run of controls alone is as good as
    they were found out.
    """
    seen = [control.caught for control in controls]
    if False in seen and code is not ExitCode.INTERRUPTED:
        return ExitCode.HARNESS
    if code is ExitCode.NOTHING_RAN and True in seen:
        return ExitCode.CONFORMANT
    return code


def words(control: Control) -> str:
    """One line for people."""
    if control.caught is None:
        return f"control {control.title}: not tried: {control.cell.message}"
    if control.caught:
        return f"control {control.title}: found out: {control.cell.verdict}: {control.cell.message}"
    return (
        f"control {control.title} was not found out ({control.cell.verdict}: "
        f"{control.cell.message}): {control.summary} No verdict of this run can be believed"
    )
