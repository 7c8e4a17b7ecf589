"""Which runs cannot be believed: those whose suite took a faked transfer for a real one, and
those that went on although the engine does not do what the suite takes for granted.

A control that was not found out speaks against every pass of its own run, and against those of
other runs by the same build of the suite on the same engine, for it is the suite that was blind.
A later run of that build that finds it out lifts the second, never the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from conformance.report import Control, Report

_Build = tuple[str, ...]
_Seen = Mapping[tuple[_Build, str], tuple[Report, Control]]


def distrusts(reports: Sequence[Report]) -> tuple[str, ...]:
    """For each report, oldest first, why no pass of it can be believed; mostly empty."""
    newest = {
        (_build(report), control.name): (report, control)
        for report in reports
        for control in report.controls
        if control.caught is not None
    }
    return tuple("; ".join(dict.fromkeys(_against(report, newest))) for report in reports)


def _against(report: Report, newest: _Seen) -> Iterator[str]:
    for assumption in report.assumptions:
        if assumption.held is False:
            yield (
                f"assumption {assumption.id} did not hold in run {report.run_id}, so no pass of it "
                "can be believed"
            )
    for control in report.controls:
        if control.caught is False:
            yield _missed(report, control)
    for (build, _), (other, control) in newest.items():
        if build == _build(report) and control.caught is False:
            yield _missed(other, control)


def _missed(report: Report, control: Control) -> str:
    return (
        f"control {control.title} was not found out in run {report.run_id} "
        f"({control.cell.verdict.value}), so no pass of this suite there can be believed"
    )


def _build(report: Report) -> _Build:
    suite, engine = report.suite, report.engine
    built = (engine.distribution, engine.version, engine.device) if engine else ()
    return (suite.name, suite.version, suite.commit or "", *built)
