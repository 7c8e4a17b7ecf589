"""Where a profile, or the documentation it quotes, says one thing and a run saw another.

A pure function over a report. Silence is no contradiction: only what is declared can be. Nor does
one change a run's exit code: the cell that failed has done that, and a page that is behind the
code breaks nobody's deployment.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from conformance.profile import Platform
from conformance.report import Cell, ConnectorResult, Report
from conformance.report_parts import Contradiction
from conformance.verdict import Verdict

PROFILE = "profile"
START = "start"
# A refusal at start says nothing of a feature: the platform's line has it.
_BROKEN = (Verdict.FAIL, Verdict.DEGRADED, Verdict.XFAIL)
_WORKS = (Verdict.PASS, Verdict.XPASS)
_NAMED_CHECKS = 3
# Capabilities that a hook of the base class stands for.
_HOOKS = {
    "load_errors": "get_block_ids_with_load_errors",
    "reset_cache": "reset_cache",
}
_FROM_PREFILL = ("params_from_prefill", "push_params_from_prefill")


def contradictions(report: Report) -> list[Contradiction]:
    """Every contradiction in a report, by connector: features, then platform, then capabilities."""
    device = report.engine.device if report.engine else ""
    return [
        found
        for column in report.connectors
        for found in (*_features(column), *_platform(column, device), *_capabilities(column))
    ]


def _features(column: ConnectorResult) -> Iterator[Contradiction]:
    for name, declared in column.declared.get("features", {}).items():
        cells = [cell for cell in column.cells if cell.feature == name]
        broken = [cell for cell in cells if cell.verdict in _BROKEN]
        works = [cell for cell in cells if cell.verdict in _WORKS]
        support = declared["support"]
        if broken and (support == "yes" or (support == "partly" and not works)):
            observed = f"{len(broken)} of {len(broken) + len(works)} checks broken: {_told(broken)}"
        elif support == "no" and works and not broken:
            observed = f"works: {len(works)} of {len(works)} checks pass"
        else:
            continue
        said = support + (f" ({declared['limit']})" if declared.get("limit") else "")
        yield Contradiction(
            connector=column.name,
            kind="feature",
            name=name,
            declared=said,
            observed=observed,
            source=declared.get("source") or PROFILE,
        )


def _told(cells: list[Cell]) -> str:
    shown = [f"{cell.check} {cell.verdict}" for cell in cells[:_NAMED_CHECKS]]
    rest = len(cells) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")


def _platform(column: ConnectorResult, device: str) -> Iterator[Contradiction]:
    if device not in get_args(Platform):  # a pair that was running already, somewhere
        return
    claimed = device in column.declared.get("platforms", ())
    start = [cell for cell in column.cells if cell.feature == START]
    refused = [c for c in start if c.verdict in (*_BROKEN, Verdict.UNSUPPORTED)]
    # What runs behind a shim does not run as shipped.
    started = [c for c in column.cells if c.verdict in _WORKS and not c.through]
    if claimed and refused:
        observed = f"does not start: {refused[0].message}"
    elif not claimed and started:
        observed = f"starts: {started[0].check} {started[0].verdict}"
    else:
        return
    yield Contradiction(
        connector=column.name,
        kind="platform",
        name=device,
        declared="yes" if claimed else "no",
        observed=observed,
        source=column.declared.get("platforms_source") or PROFILE,
    )


def _capabilities(column: ConnectorResult) -> Iterator[Contradiction]:
    said = column.introspected
    for name, wanted in (column.declared.get("capabilities") or {}).items():
        seen = _seen(name, said)
        if wanted is not None and isinstance(seen, bool) and seen is not wanted:
            yield _capability(column, name, _yes(wanted), f"the class says {_yes(seen)}")
    if said.get("abstract_left"):
        names = ", ".join(said["abstract_left"])
        yield _capability(column, "abstract methods", "none left", f"cannot be made: {names}")
    if said.get("takes_kv_cache_config") is False:
        given = ", ".join(said.get("constructor", ()))
        wanted = "vllm_config, role, kv_cache_config"
        yield _capability(column, "constructor", wanted, given or "no parameters")
    handoff = column.declared.get("handoff")
    if handoff in _FROM_PREFILL and said.get("returns_params") is False:
        observed = "request_finished returns no params in any branch of its source"
        yield _capability(column, "handoff", handoff, observed)


def _seen(name: str, said: dict[str, Any]) -> Any:
    """What the class says of a capability; ``None`` where it could not be loaded."""
    if name in _HOOKS:
        return _HOOKS[name] in said["overrides"] if "overrides" in said else None
    return said.get(name)


def _capability(column: ConnectorResult, name: str, declared: str, observed: str) -> Contradiction:
    return Contradiction(
        connector=column.name,
        kind="capability",
        name=name,
        declared=declared,
        observed=observed,
        source=PROFILE,
    )


def _yes(value: bool) -> str:
    return "yes" if value else "no"
