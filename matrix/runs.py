"""A report without its cells: what ran where, and what speaks for or against it."""

from __future__ import annotations

from conformance.expectations_outcome import words as expectation_words
from conformance.registry_gate import words as gate_words
from conformance.report import Report
from matrix.merge import utc
from matrix.parts import ControlResult, EngineBuild, Run


def run_of(report: Report, distrust: str) -> Run:
    """One report as a run of the matrix; ``distrust`` is from :mod:`matrix.trust`."""
    gate = report.registry if report.registry and report.registry.decides else None
    elsewhere = [*gate_words(gate), *expectation_words(report.expectations)]
    return Run(
        run_id=report.run_id,
        started=utc(report.started),
        state=report.state,
        suite=report.suite,
        engine=_build(report),
        host=report.host,
        packages=dict(sorted(report.packages.items())),
        timing=report.timing,
        # What these say stands in sections of their own.
        problems=tuple(told for told in report.problems if told not in elsewhere),
        controls=tuple(ControlResult(c, c.caught) for c in report.controls),
        distrust=distrust,
        registry=gate,
        expectations=report.expectations,
    )


def _build(report: Report) -> EngineBuild | None:
    engine = report.engine
    return EngineBuild(engine.distribution, engine.version, engine.device) if engine else None
