"""What speaks for or against a matrix as a whole, in the words of both pages."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.controls import words as control_words
from conformance.registry_gate import words as gate_words
from conformance.report_parts import RegistryGate
from conformance.verdict import Verdict
from matrix import words
from matrix.model import Column, Matrix
from matrix.parts import CheckResult, Replaced, Run

CONTROLS = "Can this be believed?"
CONTROLS_LEAD = (
    "A control is a connector that fakes its transfers. A run that does not find it out cannot "
    "tell a real transfer from a faked one, and no pass of it counts."
)
REGISTRY = "The engine's registry"
REPLACED = "Where reports disagree"
REPLACED_LEAD = (
    "Results that a newer run replaced with another verdict. A check that a newer run could not "
    "try replaces nothing."
)
REPLACED_COLUMNS = ("Connector", "Check", "Shown", "Replaced")
CONTRADICTIONS = "Said, and not so"
CONTRADICTIONS_LEAD = (
    "What a profile or a page it quotes says of a connector, against what its newest run saw or "
    "its class says of itself. What nobody declared cannot be contradicted."
)
CONTRADICTION_COLUMNS = ("Connector", "About", "Declared", "Observed", "Declared in")
_OUTCOME = {True: Verdict.PASS, False: Verdict.FAIL, None: Verdict.NOT_RUN}


def controls(matrix: Matrix) -> list[tuple[Verdict, str, str]]:
    """A verdict on each run's controls, the run's id and a line, newest first; empty without any.

    Where some run had a control, those that had none are named.
    """
    with_any = [run for run in reversed(matrix.runs) if run.controls or run.distrust]
    if not with_any:
        return []
    without = [run.run_id for run in reversed(matrix.runs) if run not in with_any]
    rest = [(Verdict.NOT_RUN, ", ".join(without), "no control was tried")] if without else []
    return [told for run in with_any for told in _of_run(run)] + rest


def _of_run(run: Run) -> Iterator[tuple[Verdict, str, str]]:
    if run.distrust:
        yield Verdict.FAIL, run.run_id, f"not to be believed: {run.distrust}"
    for found in run.controls:
        yield _OUTCOME[found.caught], run.run_id, control_words(found.control)


def controls_in_brief(matrix: Matrix) -> str:
    """One line for the head of a page."""
    seen = {verdict for verdict, _, _ in controls(matrix)}
    if not seen:
        return "none was tried, so nothing says whether a faked transfer would be found out"
    if Verdict.FAIL in seen:
        return "not all found out: not every run here can be believed"
    if Verdict.PASS not in seen:
        return "none could be tried"
    return "found out" + (", but not tried in every run" if Verdict.NOT_RUN in seen else "")


def registries(matrix: Matrix) -> list[tuple[Run, RegistryGate]]:
    """The newest comparison for each vLLM version and platform, newest first."""
    found = {
        (r.registry.vllm, r.registry.platform): (r, r.registry) for r in matrix.runs if r.registry
    }
    return list(reversed(found.values()))


def registry_line(gate: RegistryGate) -> str:
    """How many connectors the engine registers, and what stands for them."""
    profiled = sum(name in gate.profiles for name in gate.registered)
    exempt = [name for name in gate.registered if name in gate.exempt and name not in gate.profiles]
    return (
        f"vLLM {gate.vllm or '?'} on {gate.platform or '?'} registers {len(gate.registered)} "
        f"connectors: {profiled} with a profile, {len(exempt)} exempt, {len(gate.missing)} with "
        "neither."
    )


def registry_problems(gate: RegistryGate) -> list[str]:
    """What has to be done about it."""
    return gate_words(gate)


def replaced(matrix: Matrix) -> list[tuple[Column, CheckResult, Replaced]]:
    """Each result that a newer one replaced, with the result that is shown for that check."""
    return [
        (column, shown, old)
        for column in matrix.columns
        for shown in _worst_of_each(matrix, column)
        for old in shown.replaced
    ]


def _worst_of_each(matrix: Matrix, column: Column) -> list[CheckResult]:
    worst: dict[str, CheckResult] = {}
    for cell in matrix.of(column.name):
        for result in cell.checks:  # worst first
            worst.setdefault(result.cell.check, result)
    return list(worst.values())


def in_run(matrix: Matrix, verdict: Verdict, run: int, message: str = "") -> str:
    """Such as ``❌ fail in 20260131T120000Z: no bytes moved``."""
    said = f": {message}" if message else ""
    return f"{words.SYMBOL[verdict]} {words.label(verdict)} in {matrix.runs[run].run_id}{said}"
