"""Architectures and engine modes on scripted servers: healthy, each broken, and each refusal.

Models are stood in for: nothing is read from one here.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.checks.test_engine_modes import IN_HOST_MEMORY
from conformance.models import recipes
from conformance.profile_file import PROFILE_FOLDER
from conformance.registry import all_checks
from conformance.scripted.faults import tied
from conformance.scripted.suite import Running, Suite, asking
from conformance.verdict import Verdict

pytestmark = pytest.mark.timeout(500)

MINE = [found for found in all_checks() if found.feature == "architectures"]
PASS, FAIL, DEGRADED = Verdict.PASS, Verdict.FAIL, Verdict.DEGRADED
UNSUPPORTED, NOT_RUN = Verdict.UNSUPPORTED, Verdict.NOT_RUN

# Fault, verdict and a part of the message, by cell.
BROKEN: dict[str, tuple[str, Verdict, str]] = {
    "architecture/qk-norm": ("decode:claim", DEGRADED, "another prompt's KV"),
    "architecture/moe": ("decode:recompute", DEGRADED, "external=0"),
    "architecture/mla": ("decode:wrong_kv", FAIL, "not the reference's answer"),
    "architecture/sliding-window": ("prefill:first_chunk:200", FAIL, "not the reference's answer"),
    "architecture/hybrid-attention": ("decode:half", DEGRADED, "recomputed the rest"),
    "architecture/hybrid-ssm": ("decode:lost_state", FAIL, "not the reference's answer"),
    "architecture/hybrid-ssm-prefix": ("prefill:sends_computed", FAIL, "not the reference's"),
    "architecture/linear-attention": ("decode:lost_state", FAIL, "not the reference's answer"),
    "architecture/multimodal": ("prefill:image_by_tokens", FAIL, "should get its own answer"),
    "engine/speculative-ngram": ("decode:no_drafts", FAIL, "should have drafted"),
    "engine/speculative-ngram-on-decode": ("decode:wrong_kv", FAIL, "not the reference's answer"),
    "engine/fp8-kv-cache": ("decode:ignores_dtype", FAIL, "cache_dtype of the decode server"),
    "engine/cross-layer-blocks": ("decode:wrong_kv", FAIL, "not the reference's answer"),
}
REFUSED = "Encoder-decoder models are not currently supported with KV connectors"


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    made = Suite(tmp_path_factory.mktemp("architectures"))
    made.pretend_built(*recipes())
    yield made
    assert made.left_behind() == []


@pytest.fixture(scope="module")
def runs(suite: Suite) -> Iterator[dict[str, Running]]:
    """Every run of this file, started."""
    every = ("--connector", "nixl", "--feature", "architectures")
    broken = asking(BROKEN)
    few = ("--check", "architecture/*ssm*", "--check", "engine/fp8*", "--check", "*/encoder*")
    example = ("--connector", "example", *few)
    layers = ("--check", "engine/cross-layer-blocks")
    fp8 = ("--connector", "nixl", "--connector", "example", "--check", "engine/fp8-kv-cache")
    made = {
        "healthy": suite.start(*every, name="healthy"),
        "broken": suite.start("--connector", "nixl", *broken, fault=tied(BROKEN), name="broken"),
        "example": suite.start(*example, name="example"),
        "silent": suite.start(*example, fault="warns_not;dies_of_dtype", name="silent"),
        "without": suite.start(*fp8, *layers, fault="no_fp8;layer_by_layer", name="without"),
        "unmoved": suite.start(
            *("--connector", "nixl", *layers), fault="prefill:ignores_layout", name="unmoved"
        ),
        "all served": suite.start(
            *("--connector", "nixl", "--check", "*/encoder*"), fault="serves_all", name="all"
        ),
    }
    yield made
    for running in made.values():
        running.wait()


def test_every_check_was_seen_red() -> None:
    others = {"architecture/encoder-decoder", "engine/host-buffer"}
    assert {found.id for found in MINE} == {*BROKEN, *others}


def test_on_a_healthy_pair_all_pass_but_what_is_refused(runs: dict[str, Running]) -> None:
    ended = runs["healthy"].wait()
    verdicts = ended.verdicts()
    assert verdicts.pop("nixl/architecture/encoder-decoder") == UNSUPPORTED
    assert verdicts.pop("nixl/engine/host-buffer") == NOT_RUN
    assert {f"nixl/{cell}": PASS for cell in BROKEN} == verdicts
    assert ended.code == 0, ended.out
    refused = ended.cell("nixl", "architecture/encoder-decoder")
    assert refused.message == (
        "refused with model tiny-whisper and --max-num-batched-tokens 2048: "
        f"'AssertionError: {REFUSED}'"
    )
    assert ended.cell("nixl", "engine/host-buffer").message == IN_HOST_MEMORY


def test_each_model_has_servers_of_its_own(runs: dict[str, Running]) -> None:
    servers = runs["healthy"].wait().report.servers
    served = {(start.deployment, start.role, start.model) for start in servers}
    for name in ("tiny-qwen3-moe", "tiny-idefics3"):
        for role in ("prefill", "decode"):
            assert (f"nixl × {name}", role, name) in served
        assert (f"reference × {name}", "reference", name) in served
    for start in servers:
        without = "--no-enable-prefix-caching" in start.command
        assert without == (start.model == "tiny-granite-hybrid")


@pytest.mark.parametrize("cell", BROKEN)
def test_each_check_goes_red_by_a_fault(runs: dict[str, Running], cell: str) -> None:
    _, verdict, words = BROKEN[cell]
    seen = runs["broken"].wait().cell("nixl", cell)
    assert (seen.verdict, words in seen.message) == (verdict, True), seen.message


def test_a_connector_without_the_hybrid_manager_is_refused_in_the_engines_words(
    runs: dict[str, Running],
) -> None:
    ended = runs["example"].wait()
    for cell in ("architecture/hybrid-ssm", "architecture/hybrid-ssm-prefix"):
        seen = ended.cell("example", cell)
        assert seen.verdict is UNSUPPORTED, seen.message
        assert "hybrid SSM models (e.g. Jamba, Bamba) require HMA and will fail" in seen.message
        assert "and then 'ValueError: Failed to promote local KV cache specs" in seen.message
    assert ended.cell("example", "engine/fp8-kv-cache").verdict is PASS
    assert ended.cell("example", "architecture/encoder-decoder").verdict is UNSUPPORTED


def test_a_refusal_that_names_no_reason_is_a_failure(runs: dict[str, Running]) -> None:
    ended = runs["silent"].wait()
    for cell, words in (
        ("architecture/hybrid-ssm", "with model tiny-granite-hybrid and --no-enable-prefix"),
        ("engine/fp8-kv-cache", "with --kv-cache-dtype fp8 cannot start and does not say why"),
    ):
        seen = ended.cell("example", cell)
        assert seen.verdict is FAIL
        assert words in seen.message
        assert "should refuse in words that name the reason" in seen.message
    assert ended.code == 1


def test_what_no_server_here_can_serve_is_not_run_in_the_engines_words(
    runs: dict[str, Running],
) -> None:
    ended = runs["without"].wait()
    for connector in ("nixl", "example"):
        seen = ended.cell(connector, "engine/fp8-kv-cache")
        assert seen.verdict is NOT_RUN, seen.message
        assert seen.message == (
            "the engine cannot serve --kv-cache-dtype fp8 here, with or without a connector: "
            "NotImplementedError: FP8 KV cache on CPU requires x86 with AVX-512 or AMX."
        )
        laid_out = ended.cell(connector, "engine/cross-layer-blocks")
        assert laid_out.verdict is NOT_RUN, laid_out.message
        assert laid_out.message == (
            "the engine cannot serve VLLM_KV_CACHE_LAYOUT=BLHNC here, with or without a connector: "
            "ValueError: VLLM_KV_CACHE_LAYOUT=BLHNC does not satisfy every supported set"
        )
    # Of each mode the pair, then the reference alone; the next connector is spared both.
    assert ended.report.timing.server_starts == 8


def test_a_layout_that_nobody_took_is_no_layout_that_was_tried(runs: dict[str, Running]) -> None:
    seen = runs["unmoved"].wait().cell("nixl", "engine/cross-layer-blocks")
    assert seen.verdict is FAIL
    assert "VLLM_KV_CACHE_LAYOUT of the prefill server" in seen.message


def test_an_encoder_that_is_no_longer_refused_waits_for_a_proof(runs: dict[str, Running]) -> None:
    seen = runs["all served"].wait().cell("nixl", "architecture/encoder-decoder")
    assert seen.verdict is NOT_RUN
    assert "it starts with a connector" in seen.message


def test_a_claimed_variant_that_is_refused_is_a_failure(suite: Suite) -> None:
    text = (PROFILE_FOLDER / "example.yaml").read_text()
    claim = 'variants: {hybrid-ssm: {support: "yes"}, moe: {support: "no", source: a page}}\n'
    file = suite.root / "claims.yaml"
    file.write_text(text.replace("name: example", "name: claims", 1) + claim)
    chosen = ("--check", "architecture/hybrid-ssm", "--check", "architecture/moe")
    ended = suite.run("--profile", str(file), *chosen, name="claims")
    seen = ended.cell("claims", "architecture/hybrid-ssm")
    assert seen.verdict is FAIL
    assert "the profile claims model tiny-granite-hybrid" in seen.message
    declared = ended.cell("claims", "architecture/moe")
    assert (declared.verdict, declared.message) == (
        UNSUPPORTED,
        "declared unsupported (source: a page)",
    )
