"""Servers that a variant needs and that do not start: the engine's doing, or the connector's?

A model or a mode that this build of vLLM cannot serve at all says nothing of a connector: the
reference, which has none, is then started alone to tell. Where it starts, the connector's servers
are what fails, and the engine owes its reason in clear words (``refusal.py``).
"""

from __future__ import annotations

from conformance.errors import CheckFailed, NotHere, Refused, ServerStartError
from conformance.refusal import is_clear
from conformance.registry import PlannedCell
from conformance.serving.deployment import Extra
from conformance.serving.rootcause import foretold


def needs_own_servers(cell: PlannedCell) -> bool:
    """Whether a refusal of its servers may be one of the model or the mode alone."""
    shape = cell.check.shape
    return cell.check.own_model or shape.extra("reference") != Extra() or bool(shape.kv_config)


def of_engine(alone: ServerStartError, cell: PlannedCell) -> Exception:
    """What it means that a server without a connector does not start either."""
    if alone.environment:
        return alone
    words = alone.root_cause or str(alone)
    return NotHere(
        f"the engine cannot serve {_what(cell)} here, with or without a connector: {words}"
    )


def of_connector(problem: ServerStartError, cell: PlannedCell) -> Exception:
    """What it means that only servers with the connector do not start."""
    if not problem.blames_connector:
        return problem
    reason = _reason(problem)
    if reason is None:
        return CheckFailed(_silence(problem, cell), problem.excerpt)
    if _is_claimed(cell):
        return CheckFailed(
            f"the profile claims {_what(cell)}, and the engine refuses it: {reason}",
            problem.excerpt,
        )
    return Refused(f"refused with {_what(cell)}: {reason}")


def _reason(problem: ServerStartError) -> str | None:
    """The engine's words that name it, if any do: its last, or a warning before them."""
    if problem.root_cause is None:
        return None
    if is_clear(problem.root_cause):
        return repr(problem.root_cause)
    warning = foretold(problem.log) if problem.log else None
    return warning and f"{warning!r}, and then {problem.root_cause!r}"


def _silence(problem: ServerStartError, cell: PlannedCell) -> str:
    how = "hangs" if problem.root_cause is None else "dies"
    return (
        f"{cell.profile.title} with {_what(cell)} cannot start and does not say why: it {how} with "
        f"{problem.root_cause or str(problem)!r}, but should refuse in words that name the reason"
    )


def _is_claimed(cell: PlannedCell) -> bool:
    declared = {str(name): what for name, what in cell.profile.variants.items()}
    found = declared.get(cell.check.variant)
    return found is not None and found.support == "yes"


def _what(cell: PlannedCell) -> str:
    shape = cell.check.shape
    model = f"model {cell.model}" if cell.check.own_model else ""
    given = (*shape.kv_config, *shape.env)
    options = " ".join((*shape.args, *(f"{name}={value}" for name, value in given)))
    return " and ".join(filter(None, (model, options))) or f"shape {shape.label}"
