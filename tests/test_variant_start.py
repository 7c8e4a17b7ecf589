"""Servers of a model or a mode that do not start: whose doing it is, and in whose words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sample_profiles import profile

from conformance.errors import CheckFailed, NotHere, Refused, ServerStartError
from conformance.models import recipes
from conformance.profile import Granularity
from conformance.registry import PlannedCell, all_checks
from conformance.serving.rootcause import foretold
from conformance.variant_start import needs_own_servers, of_connector, of_engine
from conformance.variants import VARIANTS

CLEAR = "ValueError: MyConnector does not support Mamba"
ENCODER = "AssertionError: Encoder-decoder models are not currently supported with KV connectors"
PROMOTE = "ValueError: Failed to promote local KV cache specs to one unified type."
WARNING = (
    "(EngineCore pid=71) WARNING 11-30 04:24:02 [vllm.py:2179] Turning off hybrid kv cache manager "
    "because the connector does not support it. Impact: hybrid SSM models will fail at startup "
    "without it."
)
WITH = "model tiny-granite-hybrid and --no-enable-prefix-caching"


def cell(check: str = "architecture/hybrid-ssm", **fields: Any) -> PlannedCell:
    found = next(one for one in all_checks() if one.id == check)
    model = found.model if found.own_model else "tiny-llama"
    return PlannedCell(found, "", profile(title="MyConnector", **fields), model)


def died(words: str | None, **fields: Any) -> ServerStartError:
    return ServerStartError(
        f"it said {words}", words, "the log", **{"blames_connector": True, **fields}
    )


def test_what_says_nothing_of_a_connector_is_not_run() -> None:
    found = of_engine(died("NotImplementedError: FP8 KV cache", blames_connector=False), cell())
    assert isinstance(found, NotHere)
    assert str(found) == (
        f"the engine cannot serve {WITH} here, with or without a connector: "
        "NotImplementedError: FP8 KV cache"
    )


def test_a_machine_at_its_limits_says_nothing_of_the_engine() -> None:
    problem = died("OutOfMemory", blames_connector=False, environment=True)
    assert of_engine(problem, cell()) is problem
    assert of_connector(problem, cell()) is problem


@pytest.mark.parametrize("words", [CLEAR, ENCODER])
def test_a_clear_refusal_is_unsupported(words: str) -> None:
    found = of_connector(died(words), cell())
    assert isinstance(found, Refused)
    assert str(found) == f"refused with {WITH}: {words!r}"


@pytest.mark.parametrize("support", ["yes", "partly"])
def test_a_clear_refusal_of_what_is_claimed_is_a_failure(support: str) -> None:
    subject = cell(variants={"hybrid-ssm": {"support": support}})
    found = of_connector(died(CLEAR), subject)
    assert isinstance(found, CheckFailed if support == "yes" else Refused)
    assert CLEAR in str(found)


@pytest.mark.parametrize(("words", "how"), [(PROMOTE, "dies"), (None, "hangs")])
def test_an_end_without_a_reason_is_a_failure(words: str | None, how: str) -> None:
    found = of_connector(died(words), cell())
    assert isinstance(found, CheckFailed)
    assert f"MyConnector with {WITH} cannot start and does not say why: it {how}" in str(found)
    assert found.excerpt == "the log"


def test_a_warning_that_foretold_the_end_is_its_reason(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(f"(EngineCore pid=71) INFO 11-30 04:24:02 [core.py:1] begins\n{WARNING}\nx\n")
    assert foretold(log) == WARNING.partition("] ")[2]
    found = of_connector(died(PROMOTE, log=log), cell())
    assert isinstance(found, Refused)
    assert "will fail at startup without it.', and then 'ValueError: Failed to" in str(found)
    log.write_text("nothing of the kind\n")
    assert foretold(log) is None
    assert isinstance(of_connector(died(PROMOTE, log=log), cell()), CheckFailed)


@pytest.mark.parametrize(
    ("check", "own"),
    [
        ("architecture/moe", True),
        ("engine/fp8-kv-cache", True),
        ("engine/host-buffer", True),
        ("engine/cross-layer-blocks", True),
        ("engine/speculative-ngram-on-decode", False),
        ("transfer/completion", False),
        ("topology/2P2D", False),
    ],
)
def test_which_checks_may_be_refused_for_their_model_or_mode(check: str, own: bool) -> None:
    assert needs_own_servers(cell(check)) is own


def test_a_mode_is_named_by_its_options() -> None:
    assert "refused with kv_buffer_device=cpu: " in str(
        of_connector(died(CLEAR), cell("engine/host-buffer"))
    )
    assert "refused with VLLM_KV_CACHE_LAYOUT=BLHNC: " in str(
        of_connector(died(CLEAR), cell("engine/cross-layer-blocks"))
    )


def test_every_variant_has_a_check_and_every_check_of_an_architecture_one() -> None:
    mine = [found for found in all_checks() if found.feature == "architectures"]
    assert {found.variant for found in mine} == set(VARIANTS)
    assert {found.model for found in mine if found.own_model} <= set(recipes())
    assert all(found.level == "extended" for found in mine)


def test_a_variant_may_promise_less_than_the_profile() -> None:
    subject = profile(
        granularity="token",
        variants={
            "hybrid-ssm": {"support": "yes", "granularity": "all_but_last"},
            "moe": {"support": "yes"},
        },
    )
    assert subject.in_variant("hybrid-ssm").granularity is Granularity.ALL_BUT_LAST
    for name in ("moe", "mla", ""):
        assert subject.in_variant(name) is subject
