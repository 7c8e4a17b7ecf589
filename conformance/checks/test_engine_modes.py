"""Engine modes: options of vLLM that change what a KV block holds, or what decode does with it.

Drafts are written into blocks beyond those that were received (vllm#49230: on one side only,
short prompts work and long ones crash), and a quantised block is no tensor of the model's dtype
(vllm#42179: wrong answers with an fp8 cache). Where a block holds all layers together, what moves
a block by layer and what finds a layer in it have to agree.
"""

import json

from conformance import expect
from conformance.case import Case
from conformance.client import Body
from conformance.developer import configured, variable
from conformance.pair import Ask, completion
from conformance.profile import Profile
from conformance.registry import check
from conformance.serving.deployment import Shape

DRAFTS = "vllm:spec_decode_num_draft_tokens_total"
_DRAFTS_OF_THREE = {
    "method": "ngram",
    "num_speculative_tokens": 3,
    "prompt_lookup_min": 1,
    "prompt_lookup_max": 3,
}
_NGRAM = ("--speculative-config", json.dumps(_DRAFTS_OF_THREE))
NGRAM = Shape("ngram", args=_NGRAM)
NGRAM_ON_D = Shape("ngram on D", decode_args=_NGRAM)
FP8 = Shape("fp8 KV", args=("--kv-cache-dtype", "fp8"))
HOST_BUFFER = Shape("host buffer", kv_config=(("kv_buffer_device", "cpu"),))
LAYOUT = "VLLM_KV_CACHE_LAYOUT"
# Blocks first, then layers. vLLM does not start with a layout that its attention backends cannot
# read (0.32.0, resolve_kv_cache_layout); a CPU's reads blocks of one layer only.
BLOCKS_OUTSIDE = "BLHNC"
CROSS_LAYER = Shape("cross-layer blocks", env=((LAYOUT, BLOCKS_OUTSIDE),))
IN_HOST_MEMORY = (
    "the KV cache of a CPU lies in host memory, so nothing is staged there (vLLM 0.32.0, "
    "nixl/base_worker.py: use_host_buffer is False)"
)
# Ids of the prompt that the answer is made of: each was there before, so there is a draft.
ANSWERS = 8


def _claims_host_buffer(profile: Profile) -> bool:
    return "host-buffer" in profile.variants


@check(
    "engine/speculative-ngram",
    feature="architectures",
    level="extended",
    shape=NGRAM,
    variant="speculative-ngram",
)
def test_drafts_on_every_server(case: Case) -> None:
    """With n-gram drafts on every server, answers from transferred KV are the reference's."""
    _prove_with_drafts(case)


@check(
    "engine/speculative-ngram-on-decode",
    feature="architectures",
    level="extended",
    shape=NGRAM_ON_D,
    variant="speculative-ngram",
)
def test_drafts_on_decode_alone(case: Case) -> None:
    """With n-gram drafts on decode alone, its answers are those of a server without drafts."""
    _prove_with_drafts(case)


@check(
    "engine/fp8-kv-cache",
    feature="architectures",
    level="extended",
    shape=FP8,
    variant="fp8-kv-cache",
)
def test_quantised_kv(case: Case) -> None:
    """KV that is kept as fp8 transfers, and answers are those of a server that keeps it so."""
    for client in (case.pair.prefill, case.pair.decode):
        kept = configured(client, "cache_config", "cache_dtype")
        case.saw(f"dtype of the KV cache on {client.server.role}", kept)
        expect.equal(kept, "fp8", f"cache_dtype of the {client.server.role} server")
    for length in (2 * case.block + 5, 3 * case.block + case.block // 2):
        case.prove(_completion(case, length))


@check(
    "engine/host-buffer",
    feature="architectures",
    level="extended",
    shape=HOST_BUFFER,
    variant="host-buffer",
    applies=_claims_host_buffer,
    not_on={"cpu": IN_HOST_MEMORY},
)
def test_kv_by_way_of_host_memory(case: Case) -> None:
    """KV that is staged in host memory (kv_buffer_device: cpu) transfers, with parity."""
    case.prove(_completion(case, 2 * case.block + 5))


@check(
    "engine/cross-layer-blocks",
    feature="architectures",
    level="extended",
    shape=CROSS_LAYER,
    variant="cross-layer-blocks",
)
def test_layers_together_in_a_block(case: Case) -> None:
    """KV whose blocks hold all layers together (layout BLHNC) transfers, with parity."""
    for client in (case.pair.prefill, case.pair.decode):
        taken = variable(client, LAYOUT)
        case.saw(f"layout of the KV cache on {client.server.role}", taken)
        expect.equal(taken, BLOCKS_OUTSIDE, f"{LAYOUT} of the {client.server.role} server")
    for length in (2 * case.block + 5, 3 * case.block + case.block // 2):
        case.prove(_completion(case, length))


def _completion(case: Case, length: int) -> Ask:
    return Ask(
        f"completion of {length} tokens",
        "completions",
        lambda variant: completion(case.ids(length, length, variant)),
    )


def _prove_with_drafts(case: Case) -> None:
    before = case.pair.decode.counters().total(DRAFTS)
    for length in (2 * case.block + 5, 3 * case.block + case.block // 2):
        case.prove(_drafted(case, length))
    drafts = case.pair.decode.counters().total(DRAFTS) - before
    case.saw("tokens drafted on decode", drafts)
    expect.true(drafts > 0, "decode should have drafted some of its answers", f"{drafts:.0f}")


def _drafted(case: Case, length: int) -> Ask:
    """An answer made of ids that the prompt has, so that what followed them is the draft."""

    def body(variant: int) -> Body:
        ids = case.ids(length, length, variant)
        allowed = list(dict.fromkeys(ids))[-ANSWERS:]
        return completion(ids, max_tokens=24, allowed_token_ids=allowed)

    return Ask(f"completion of {length} tokens, answered by ids of the prompt", "completions", body)
