"""The registry gate: a connector nobody wrote a profile for makes a whole run red."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.errors import UsageError
from conformance.introspection import ConnectorFacts, Introspection
from conformance.profile import Profile
from conformance.profile_file import builtin_profiles
from conformance.registry_gate import EXEMPTIONS, compare, exemptions, gated, words
from conformance.report_parts import Exemption, RegistryGate
from conformance.scripted.suite import Running, Suite
from conformance.verdict import ExitCode

SHIPPED = builtin_profiles()
NIXL = SHIPPED["nixl"]
EXEMPT = Exemption(reason="Moves nothing between P and D.", link="https://a.b", seen_in="0.32.0")


def engine(*names: str, version: str = "0.32.0") -> Introspection:
    """An engine that registers these; NIXL's class has two names, as in vLLM."""
    return Introspection(
        vllm=version,
        connectors=tuple(
            ConnectorFacts(
                name=name,
                registered=True,
                defined_in="nixl" if name.startswith("Nixl") else name,
                class_name="NixlPullConnector" if name.startswith("Nixl") else name,
            )
            for name in names
        ),
    )


def gate(
    found: Introspection, *profiles: Profile, exempt: tuple[str, ...] = (), decides: bool = True
) -> RegistryGate:
    return compare(found, profiles, dict.fromkeys(exempt, EXEMPT), decides=decides)


def test_every_registered_connector_with_a_profile_or_exemption_is_fine() -> None:
    found = gate(engine("NixlConnector", "Quiet"), NIXL, exempt=("Quiet",))
    assert (found.missing, found.stale, words(found)) == ([], {}, [])
    assert found.registered == ["NixlConnector", "Quiet"]
    assert found.exempt["Quiet"].link == "https://a.b"
    assert gated(ExitCode.CONFORMANT, found) is ExitCode.CONFORMANT


def test_a_registered_connector_without_either_is_named_with_the_fix() -> None:
    found = gate(engine("NixlConnector", "BrandNewConnector"), NIXL)
    assert found.missing == ["BrandNewConnector"]
    [line] = words(found)
    assert "registers BrandNewConnector" in line
    assert "kv-conformance init-profile BrandNewConnector" in line


def test_another_name_of_a_class_with_a_profile_is_covered() -> None:
    found = gate(engine("NixlConnector", "NixlPullConnector"), NIXL)
    assert found.missing == []
    assert found.profiles == {"NixlConnector": ["nixl"], "NixlPullConnector": ["nixl"]}


def test_several_profiles_of_one_class_are_all_named() -> None:
    push = NIXL.model_copy(update={"name": "nixl-libfabric"})
    assert gate(engine("NixlConnector"), NIXL, push).profiles == {
        "NixlConnector": ["nixl", "nixl-libfabric"]
    }


def test_a_profile_of_a_class_outside_the_registry_covers_no_registered_name() -> None:
    own = NIXL.model_copy(update={"module_path": "my.module"})
    assert gate(engine("NixlConnector"), own).missing == ["NixlConnector"]


def test_an_exemption_of_a_connector_that_has_a_profile_is_stale() -> None:
    found = gate(engine("NixlConnector"), NIXL, exempt=("NixlConnector",))
    assert found.stale == {"NixlConnector": "has a profile now: nixl"}
    assert "remove it from registry_exemptions.yaml" in words(found)[0]


@pytest.mark.parametrize(
    ("version", "stale"),
    [("0.32.0", True), ("0.33.1", True), ("0.31.2", False), ("0.32.0+cpu", True), ("dev", True)],
)
def test_an_exemption_of_what_is_not_registered_is_stale_except_on_an_older_engine(
    version: str, stale: bool
) -> None:
    found = gate(engine("NixlConnector", version=version), NIXL, exempt=("Gone",))
    assert (found.stale == {"Gone": f"vLLM {version} does not register it"}) is stale
    assert bool(words(found)) is stale


MISSING = RegistryGate(decides=True, missing=["BrandNewConnector"])
STALE = RegistryGate(decides=True, stale={"Gone": "not registered"})
UNREAD = RegistryGate(decides=True, problem="no registry")


@pytest.mark.parametrize(
    ("red", "before", "after"),
    [
        (MISSING, ExitCode.CONFORMANT, ExitCode.NOT_CONFORMANT),
        (STALE, ExitCode.CONFORMANT, ExitCode.NOT_CONFORMANT),
        (MISSING, ExitCode.NOTHING_RAN, ExitCode.NOT_CONFORMANT),
        (MISSING, ExitCode.HARNESS, ExitCode.NOT_CONFORMANT),
        (MISSING, ExitCode.INTERRUPTED, ExitCode.INTERRUPTED),
        (UNREAD, ExitCode.CONFORMANT, ExitCode.HARNESS),
        (UNREAD, ExitCode.NOT_CONFORMANT, ExitCode.NOT_CONFORMANT),
        (None, ExitCode.CONFORMANT, ExitCode.CONFORMANT),
    ],
)
def test_the_exit_code(red: RegistryGate | None, before: ExitCode, after: ExitCode) -> None:
    assert gated(before, red) is after


@pytest.mark.parametrize("red", [MISSING, STALE, UNREAD])
def test_a_run_of_chosen_connectors_is_not_judged(red: RegistryGate) -> None:
    seen = red.model_copy(update={"decides": False})
    assert gated(ExitCode.CONFORMANT, seen) is ExitCode.CONFORMANT
    assert words(seen) == []


def test_a_registry_that_could_not_be_read_is_said() -> None:
    assert "could not be compared: no registry" in words(UNREAD)[0]


def test_the_shipped_exemptions_have_reasons_and_links() -> None:
    shipped = exemptions()
    assert {"ExampleHiddenStatesConnector", "HiSparseConnector"} == set(shipped)
    assert all("get_num_new_matched_tokens" in why.reason for why in shipped.values())


@pytest.mark.parametrize("text", ["A: {reason: short, link: x}", "A: because", "[", "- A"])
def test_a_malformed_exemption_is_named_by_its_file(tmp_path: Path, text: str) -> None:
    file = tmp_path / EXEMPTIONS.name
    file.write_text(text)
    with pytest.raises(UsageError, match=f"(?s){file}: .*reason, link and seen_in"):
        exemptions(file)


CHECK = ("--check", "transfer/completion")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Running]]:
    suite = Suite(tmp_path_factory.mktemp("gate"))
    chosen = (*CHECK, "--connector", "nixl")
    with pytest.MonkeyPatch.context() as patched:
        # Run a few: what is compared is all that are shipped.
        few = {name: SHIPPED[name] for name in ("example", "nixl")}
        patched.setattr("conformance.options.builtin_profiles", lambda: few)
        started = {
            "whole": suite.start(*CHECK, fault="registers_more", name="whole"),
            "chosen": suite.start(*chosen, fault="registers_more", name="chosen"),
        }
    yield started
    assert suite.left_behind() == []


@pytest.mark.timeout(300)
def test_a_whole_run_on_an_engine_with_an_unknown_connector_is_red(
    runs: dict[str, Running],
) -> None:
    ended = runs["whole"].wait()
    assert ended.code == ExitCode.NOT_CONFORMANT
    assert "kv-conformance init-profile BrandNewConnector" in ended.out
    assert ended.report.registry
    assert ended.report.registry.missing == ["BrandNewConnector"]
    assert any("BrandNewConnector" in problem for problem in ended.report.problems)
    page = (ended.folder / "matrix.md").read_text()
    assert "kv-conformance init-profile BrandNewConnector" in page


@pytest.mark.timeout(300)
def test_a_run_of_one_connector_on_it_is_green_and_introspected(runs: dict[str, Running]) -> None:
    ended = runs["chosen"].wait()
    assert ended.code == ExitCode.CONFORMANT
    assert ended.report.registry
    assert not ended.report.registry.decides
    column = ended.report.connector("nixl")
    assert column
    assert column.introspected["hma"] is True
    assert column.introspected["params"] == ["do_remote_prefill", "remote_block_ids"]
