"""What the connectors of a run say of themselves reaches its report, whatever the engine does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from test_matrix_samples import column, report

from conformance import self_description
from conformance.errors import EnvironmentProblem
from conformance.introspection import ConnectorFacts, Introspection
from conformance.options import RunOptions
from conformance.profile import Profile
from conformance.profile_file import builtin_profiles
from conformance.report import Report
from conformance.scripted.environment import server_python
from conformance.self_description import describe
from conformance.serving.engine import Engines

SHIPPED = builtin_profiles()
NIXL = SHIPPED["nixl"]
WHOLE = RunOptions()


def own(**changes: Any) -> Profile:
    return NIXL.model_copy(update={"name": "own", **changes})


@pytest.fixture
def engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engines:
    monkeypatch.setenv("KV_CONFORMANCE_CACHE", str(tmp_path / "cache"))
    return Engines(str(server_python(tmp_path / "engine")), {})


def described(
    engines: Engines, *profiles: Profile, options: RunOptions = WHOLE, told: Any = None
) -> Report:
    made = report(*(column(name=profile.name) for profile in profiles))
    describe(made, profiles, engines, options, told or (lambda _: None))
    return made


def said(made: Report, name: str) -> dict[str, Any]:
    found = made.connector(name)
    assert found
    return found.introspected


def test_registered_and_own_classes_are_asked_in_one_go(engines: Engines) -> None:
    told: list[str] = []
    mine = own(connector="Whole", module_path="conformance.scripted.connector_classes")
    made = described(engines, NIXL, mine, told=told.append)
    assert said(made, "nixl")["hma"] is True
    assert said(made, "own")["params"] == ["remote_blocks", "remote_place"]
    assert len(told) == 1
    assert "asking vLLM 0.32.0" in told[0]
    described(engines, NIXL, mine, told=told.append)
    assert len(told) == 1


def test_a_class_that_is_not_registered_or_not_importable_is_a_problem_of_its_own(
    engines: Engines,
) -> None:
    absent = own(connector="NoSuchConnector")
    broken = own(
        name="broken", connector="Gone", module_path="conformance.scripted.connector_classes"
    )
    made = described(engines, absent, broken, NIXL)
    assert said(made, "own") == {"problem": "vLLM 0.32.0 registers no NoSuchConnector"}
    assert "has no attribute 'Gone'" in said(made, "broken")["problem"]
    assert said(made, "nixl")["hma"] is True


def test_an_engine_of_its_own_that_is_not_there_is_a_problem_of_that_connector(
    engines: Engines,
) -> None:
    elsewhere = own(server_python="/nowhere/python")
    made = described(engines, elsewhere, NIXL)
    assert "/nowhere/python" in said(made, "own")["problem"]
    assert said(made, "nixl")["hma"] is True


@pytest.mark.parametrize(
    ("options", "decides"),
    [
        (RunOptions(), True),
        (RunOptions(checks=("transfer/completion",)), True),
        (RunOptions(connectors=("nixl",)), False),
        (RunOptions(profiles=(Path("own.yaml"),)), False),
    ],
)
def test_the_registry_decides_in_a_run_of_all_connectors_only(
    engines: Engines, options: RunOptions, decides: bool
) -> None:
    gate = described(engines, NIXL, options=options).registry
    assert gate
    assert gate.decides is decides
    assert (gate.vllm, gate.platform, gate.missing) == ("0.32.0", "cpu", [])
    assert set(gate.exempt) == {"ExampleHiddenStatesConnector", "HiSparseConnector"}
    assert "nixl" in gate.profiles["NixlConnector"]


def test_an_engine_that_cannot_be_asked_does_not_end_the_run(
    engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def fail(*_: object) -> Introspection:
        asked.append(1)
        raise EnvironmentProblem("it hangs")

    monkeypatch.setattr(self_description, "introspect", fail)
    made = described(engines, NIXL, own())
    assert said(made, "nixl") == said(made, "own") == {"problem": "it hangs"}
    assert made.registry
    assert (made.registry.decides, made.registry.problem) == (True, "it hangs")
    assert len(asked) == 1


@pytest.mark.parametrize(("child", "together"), [(True, True), (False, False), (None, False)])
def test_a_connector_of_children_supports_hma_if_they_all_do(
    engines: Engines, monkeypatch: pytest.MonkeyPatch, child: bool | None, together: bool
) -> None:
    def answer(_: object, targets: Sequence[str], *__: object) -> Introspection:
        known = [("MultiConnector", True), ("NixlConnector", True), ("ExampleConnector", child)]
        facts = [ConnectorFacts(name=name, registered=True, hma=hma) for name, hma in known]
        return Introspection(vllm="0.32.0", connectors=tuple(facts))

    monkeypatch.setattr(self_description, "introspect", answer)
    multi = own(connector="MultiConnector", parts=(NIXL, SHIPPED["example"]))
    assert said(described(engines, multi), "own")["hma"] is together
