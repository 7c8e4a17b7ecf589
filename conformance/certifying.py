"""From a run's report to a certificate, or to the reasons against one: a pure function.

Strict: a required cell is a pass with evidence, or excused by a declaration that has a source.
Everything else is a refusal, and so is a run that found out no control.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.certificate import (
    Certificate,
    CertifiedCell,
    ControlSeen,
    DeclaredException,
    Refusal,
    SetName,
    Subject,
)
from conformance.declared import exceptions_of
from conformance.errors import ReportError
from conformance.evidence import Evidence, Outcome, Rung
from conformance.profile import Profile
from conformance.report import Cell, Control, Report
from conformance.requirement_sets import RequirementSet, not_asked, required_cells
from conformance.verdict import Verdict

# Nothing is left of a connector that is excused from these.
INDISPENSABLE = ("start", "basic-transfer")
_WORST_FIRST = (
    Outcome.BROKEN,
    Outcome.BLIND,
    Outcome.RECOMPUTED,
    Outcome.HELD,
    Outcome.NOT_APPLICABLE,
)


def certify_report(
    report: Report, profile: Profile, kept: RequirementSet, packages: dict[str, str], command: str
) -> Certificate:
    """Judge one connector's column of a report by a requirement set."""
    if report.engine is None:
        raise ReportError("the report names no engine, so it cannot be certified")
    wanted = required_cells(kept, profile)
    found = _cells(report, profile)
    asked = [found[name] for name in wanted if name in found]
    refusals = [*_against_run(report), *_against_cells(wanted, found, profile)]
    return Certificate(
        certified=not refusals,
        refusals=refusals,
        subject=_subject(profile),
        requirement_set=SetName(id=kept.id, version=kept.version, digest=kept.digest),
        date=report.started,
        suite=report.suite,
        engine=report.engine,
        host=report.host,
        model=", ".join(dict.fromkeys(cell.model for cell in asked)),
        seed=report.seed,
        packages=packages,
        controls=[_control(control) for control in report.controls],
        cells=[_certified(cell) for cell in asked],
        exceptions=_exceptions(asked, profile),
        not_asked=not_asked(kept, profile),
        run_id=report.run_id,
        command=command,
    )


def _against_run(report: Report) -> Iterator[Refusal]:
    if report.state != "finished":
        yield Refusal(cell=None, reason=f"the run is {report.state}, not finished")
    for control in report.controls:
        if control.caught is False:
            reason = f"control {control.title} was not found out, so no verdict can be believed"
            yield Refusal(cell=None, reason=reason)
    if not any(control.caught for control in report.controls):
        yield Refusal(cell=None, reason="no control was found out: the run may be blind")


def _against_cells(
    wanted: Sequence[str], found: dict[str, Cell], profile: Profile
) -> Iterator[Refusal]:
    for name in wanted:
        reason = _against(found[name], profile) if name in found else "not in the report"
        if reason:
            yield Refusal(cell=name, reason=reason)


def _against(cell: Cell, profile: Profile) -> str | None:
    """Why a cell does not count; ``None`` where it does."""
    if cell.verdict is Verdict.UNSUPPORTED:
        return _against_excuse(cell, profile)
    if cell.verdict is not Verdict.PASS:
        return f"{cell.verdict}: {cell.message}"
    if cell.through:
        return f"won through a shim, so not by the connector as shipped: {cell.through}"
    return None if _has_evidence(cell.evidence) else "pass, but without evidence"


def _against_excuse(cell: Cell, profile: Profile) -> str | None:
    if cell.feature in INDISPENSABLE:
        return f"{cell.feature} cannot be declared away: {cell.message}"
    if cell.feature not in exceptions_of(profile):
        return f"unsupported, but the profile does not declare it: {cell.message}"
    return None


def _has_evidence(evidence: Evidence) -> bool:
    steps = [step for proof in evidence.proofs for step in proof.steps]
    return bool(evidence.facts) or any(step.outcome is Outcome.HELD for step in steps)


def _cells(report: Report, profile: Profile) -> dict[str, Cell]:
    column = report.connector(profile.name)
    return {cell.check: cell for cell in column.cells} if column else {}


def _certified(cell: Cell) -> CertifiedCell:
    return CertifiedCell(
        check=cell.check,
        feature=cell.feature,
        level=cell.level,
        requirement=cell.requirement,
        verdict=cell.verdict,
        message=cell.message,
        reached=cell.evidence.reached,
        ladder=_ladder(cell.evidence),
        replay=cell.replay,
    )


def _ladder(evidence: Evidence) -> dict[Rung, str]:
    seen: dict[Rung, set[Outcome]] = {}
    for proof in evidence.proofs:
        for step in proof.steps:
            seen.setdefault(step.name, set()).add(step.outcome)
    return {
        rung: next(outcome for outcome in _WORST_FIRST if outcome in seen[rung]).value
        for rung in Rung
        if rung in seen
    }


def _exceptions(cells: Sequence[Cell], profile: Profile) -> list[DeclaredException]:
    return [
        DeclaredException(
            feature=name, limit=declared.limit, source=declared.source or "", cells=excused
        )
        for name, declared in exceptions_of(profile).items()
        if (excused := [c.check for c in cells if c.feature == name])
    ]


def _control(control: Control) -> ControlSeen:
    return ControlSeen(
        name=control.name,
        title=control.title,
        found_out=control.caught,
        verdict=control.cell.verdict,
        message=control.cell.message,
    )


def _subject(profile: Profile) -> Subject:
    return Subject(
        name=profile.name,
        title=profile.title,
        connector_class=profile.connector,
        module_path=profile.module_path,
        profile_path=str(profile.path),
        profile_digest=profile.digest,
        links=list(profile.links),
    )
